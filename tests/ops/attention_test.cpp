// Values of attention: against the formula, and what must hold between its ways of being called.
#include "rapt/ops/attention.h"

#include "tests/ops/attention_problem.h"

namespace rapt {
namespace {

using testing::AttentionProblem;
using testing::bools;
using testing::difference;
using testing::error_of;
using testing::random_tensor;
using testing::same_bits;
using testing::small_tiles;
using testing::values_of;

const std::vector<AttentionOptions> kTiles = {{}, small_tiles()};

bool all_seen(int64_t, int64_t, int64_t, int64_t) { return true; }

TEST(Attention, FollowsTheFormulaWithinEachSentence) {
  const std::vector<std::pair<Rows, Rows>> batches = {
      {Rows::packed({5}), Rows::packed({5})},
      {Rows::packed({3, 1, 9}), Rows::packed({3, 1, 9})},
      {Rows::packed({2, 7, 0, 1}), Rows::packed({6, 3, 4, 0})},
      {Rows::packed({1}), Rows::packed({40})}};
  for (const auto& [queries, keys] : batches) {
    const AttentionProblem problem(queries, keys);
    const AttentionProblem narrow(queries, keys, 2, 3, 4, DType::f32);
    for (const AttentionOptions& options : kTiles) {
      EXPECT_LE(difference(problem.run({}, options), problem.formula(all_seen)), 1e-13);
      EXPECT_LE(difference(narrow.run({}, options), narrow.formula(all_seen)), 1e-5);
    }
    AttentionOptions scaled = small_tiles();
    scaled.scale = 0.3;
    EXPECT_LE(difference(problem.run({}, scaled), problem.formula(all_seen, {}, 0.3)), 1e-13);
  }
}

TEST(Attention, ReadsHeadsFromColumnsOfAWiderProduct) {
  const Rows rows = Rows::packed({3, 4});
  const Tensor product = random_tensor({7, 18}, 1);
  const auto heads = [&](int64_t i) { return product.columns(6 * i, 6).reshape({7, 2, 3}); };
  const Tensor from_views = attention(heads(0), rows, heads(1), heads(2), rows);
  const Tensor from_copies = attention(heads(0).contiguous_copy(), rows, heads(1).contiguous_copy(),
                                       heads(2).contiguous_copy(), rows);
  EXPECT_TRUE(same_bits(from_views, from_copies));
}

TEST(Attention, MasksHideWhatTheySay) {
  const Rows rows = Rows::packed({9, 4});
  const AttentionProblem problem(rows, rows), narrow(rows, rows, 2, 3, 4, DType::f32);
  std::vector<int> allowed(13);
  for (size_t i = 0; i < 13; ++i) allowed[i] = i % 3 != 1;
  const auto keep = [&](int64_t b, int64_t j) {
    return allowed[static_cast<size_t>(rows[b].row + j)] == 1;
  };
  const Mask by_key = Mask::keep(bools(allowed, {13}));
  using L = int64_t;
  const std::vector<std::pair<Mask, testing::Sees>> cases = {
      {Mask::causal(), [](L, L, L i, L j) { return j <= i; }},
      {Mask::window(2), [](L, L, L i, L j) { return std::abs(i - j) <= 2; }},
      {Mask::window(0), [](L, L, L i, L j) { return i == j; }},
      {by_key, [&](L b, L, L, L j) { return keep(b, j); }},
      {by_key & Mask::causal(), [&](L b, L, L i, L j) { return keep(b, j) && j <= i; }},
      {Mask::causal() & Mask::window(3), [](L, L, L i, L j) { return j <= i && i - j <= 3; }}};
  for (const auto& [mask, sees] : cases) {
    for (const AttentionOptions& options : kTiles) {
      EXPECT_LE(difference(problem.run(mask, options), problem.formula(sees)), 1e-13);
      EXPECT_LE(difference(narrow.run(mask, options), narrow.formula(sees)), 1e-5);
    }
  }
}

TEST(Attention, MatricesOfEveryRankMaskAndBias) {
  const Rows rows = Rows::equal(2, 6);
  const AttentionProblem problem(rows, rows);
  for (const Shape& shape : {Shape{6, 6}, Shape{2, 6, 6}, Shape{2, 2, 6, 6}}) {
    std::vector<int> allowed(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = i * 7 % 5 < 3;
    const Tensor bias = random_tensor(shape, 4);
    const std::vector<double> added = values_of(bias);
    const auto index = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      const int64_t matrix = shape.rank() == 4 ? b * 2 + h : shape.rank() == 3 ? b : 0;
      return static_cast<size_t>(matrix * 36 + i * 6 + j);
    };
    const testing::Sees sees = [&](auto... at) { return allowed[index(at...)] == 1; };
    const testing::AddedScore plus = [&](auto... at) { return added[index(at...)]; };
    for (AttentionOptions options : kTiles) {
      options.bias = bias;
      const Mask mask = Mask::keep(bools(allowed, shape));
      EXPECT_LE(difference(problem.run(mask, options), problem.formula(sees, plus)), 1e-13);
      EXPECT_LE(difference(problem.run({}, options), problem.formula(all_seen, plus)), 1e-13);
    }
  }
}

TEST(Attention, WeightsAreTheSoftmaxAndTheContextKeepsItsBits) {
  const Rows queries = Rows::packed({3, 0, 5}), keys = Rows::packed({4, 2, 7});
  for (const DType dtype : {DType::f64, DType::f32}) {
    const AttentionProblem problem(queries, keys, 2, 3, 4, dtype);
    for (const AttentionOptions& options : kTiles) {
      for (const bool causal : {false, true}) {
        const Mask mask = causal ? Mask::causal() : Mask();
        const AttentionResult result = problem.run_with_weights(mask, options);
        EXPECT_TRUE(same_bits(result.context, problem.run(mask, options)));
        ASSERT_EQ(result.weights.shape(), Shape({3, 2, 5, 7}));
        const auto plain = testing::plain_attention(
            problem.q, queries, problem.k, problem.v, keys,
            [&](int64_t, int64_t, int64_t i, int64_t j) { return !causal || j <= i; });
        const std::vector<double> got = values_of(result.weights);
        for (int64_t bh = 0; bh < 6; ++bh) {
          const int64_t Tq = queries[bh / 2].count, Tk = keys[bh / 2].count;
          for (int64_t i = 0; i < 5; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < 7; ++j) {
              const double w = got[static_cast<size_t>((bh * 5 + i) * 7 + j)];
              const bool real = i < Tq && j < Tk;
              const double wanted =
                  real ? plain.weights[static_cast<size_t>(bh)][static_cast<size_t>(i * Tk + j)]
                       : 0;
              EXPECT_NEAR(w, wanted, dtype == DType::f64 ? 1e-14 : 1e-6);
              EXPECT_TRUE(real || w == 0);
              sum += w;
            }
            EXPECT_NEAR(sum, i < Tq && Tk > 0 ? 1 : 0, dtype == DType::f64 ? 1e-14 : 1e-6);
          }
        }
      }
    }
  }
}

TEST(Attention, R10_WeightsComeByHeadAndTheirMeanIsWhatItSays) {
  const Rows rows = Rows::equal(2, 3);
  const AttentionProblem problem(rows, rows);
  const AttentionResult result = problem.run_with_weights();
  EXPECT_EQ(result.weights.shape(), Shape({2, 2, 3, 3}));
  // The two heads differ, so an average would show.
  EXPECT_GT(difference(result.weights.reshape({4, 9}).rows(0, 1),
                       result.weights.reshape({4, 9}).rows(1, 1)),
            0.01);
}

TEST(Attention, R05_CausalHoldsWithWeightsAndWithoutWithAKeyMaskAndWithout) {
  const Rows rows = Rows::equal(2, 5);
  const AttentionProblem problem(rows, rows);
  const Mask open = Mask::keep(bools(std::vector<int>(10, 1), {10}));
  const Tensor wanted = problem.run(Mask::causal());
  for (const Mask& mask : {Mask::causal(), Mask::causal() & open}) {
    EXPECT_TRUE(same_bits(problem.run(mask), wanted));
    const AttentionResult result = problem.run_with_weights(mask);
    EXPECT_TRUE(same_bits(result.context, wanted));
    const std::vector<double> w = values_of(result.weights);
    for (size_t n = 0; n < w.size(); ++n) {
      const size_t i = n / 5 % 5, j = n % 5;
      if (j > i) {
        EXPECT_EQ(w[n], 0);
      } else {
        EXPECT_GT(w[n], 0);
      }
    }
  }
}

TEST(Attention, R04_ALaterTokenDoesNotMoveAnEarlierOne) {
  const Rows rows = Rows::packed({6, 5});
  for (const DType dtype : {DType::f64, DType::f32}) {
    const AttentionProblem problem(rows, rows, 2, 3, 4, dtype);
    for (const AttentionOptions& options : kTiles) {
      const Tensor before = problem.run(Mask::causal(), options);
      for (int64_t changed = 0; changed < 11; ++changed) {
        AttentionProblem other = problem;
        const auto change = [&](const Tensor& x) {
          std::vector<double> values = values_of(x);
          const int64_t row = x.shape().row_size();
          for (int64_t c = 0; c < row; ++c)
            values[static_cast<size_t>(changed * row + c)] += 1 + static_cast<double>(c);
          return Tensor::from(values, x.shape()).to(dtype);
        };
        other.q = change(problem.q);
        other.k = change(problem.k);
        other.v = change(problem.v);
        const Tensor after = other.run(Mask::causal(), options);
        const int64_t sentence = changed < 6 ? 0 : 1;
        for (int64_t row = 0; row < 11; ++row) {
          const bool moves = (row < 6 ? 0 : 1) == sentence && row >= changed;
          EXPECT_EQ(same_bits(before.rows(row, 1), after.rows(row, 1)), !moves) << row;
        }
      }
    }
  }
}

TEST(Attention, R04_TheSamePermissionsAsKeepAndAsDropGiveTheSameBits) {
  const Rows rows = Rows::equal(1, 6);
  const AttentionProblem problem(rows, rows);
  std::vector<int> upper(36), lower(36);
  for (size_t i = 0; i < 36; ++i) {
    upper[i] = i % 6 > i / 6;
    lower[i] = 1 - upper[i];
  }
  const Tensor causal = problem.run(Mask::causal());
  EXPECT_TRUE(same_bits(problem.run(Mask::drop(bools(upper, {6, 6}))), causal));
  EXPECT_TRUE(same_bits(problem.run(Mask::keep(bools(lower, {6, 6}))), causal));
  EXPECT_GT(difference(problem.run(Mask::keep(bools(upper, {6, 6}))), causal), 0.1);
}

TEST(Attention, R06_FewerQueriesThanKeysAreTheLastRowsOfTheWhole) {
  const int64_t S = 8;
  for (const DType dtype : {DType::f64, DType::f32}) {
    const AttentionProblem whole(Rows::packed({S}), Rows::packed({S}), 2, 3, 4, dtype);
    for (const AttentionOptions& options : kTiles) {
      const Tensor wanted = whole.run(Mask::causal(), options);
      for (int64_t L = 1; L <= S; ++L) {
        const Rows last({{.row = 0, .count = L, .position = S - L, .sample = 0}});
        const Tensor got = attention(whole.q.rows(S - L, L), last, whole.k, whole.v, whole.keys,
                                     Mask::causal(), options);
        EXPECT_TRUE(same_bits(got, wanted.rows(S - L, L))) << L;
      }
    }
  }
}

TEST(Attention, R06_QueriesBeforeEveryKeyGiveZeros) {
  // L = 5, S = 2: positions 0..4 of queries, keys at 3 and 4.
  const Rows queries = Rows::packed({5});
  const Rows keys({{.row = 0, .count = 2, .position = 3, .sample = 0}});
  const AttentionProblem problem(queries, keys);
  const Tensor out = problem.run(Mask::causal());
  EXPECT_EQ(values_of(out.rows(0, 3)), std::vector<double>(24, 0));
  EXPECT_LE(difference(out, problem.formula(
                                [](int64_t, int64_t, int64_t i, int64_t j) { return j + 3 <= i; })),
            1e-14);
}

TEST(Attention, CachedKeysWithGapsBehindThemAreReadInPlace) {
  // Two sentences in a cache of capacity 6, with 3 and 5 keys filled.
  const Tensor cache_k = random_tensor({12, 2, 3}, 1), cache_v = random_tensor({12, 2, 3}, 2);
  const Rows cached({{.row = 0, .count = 3, .position = 0, .sample = 0},
                     {.row = 6, .count = 5, .position = 0, .sample = 1}});
  const Rows step({{.row = 0, .count = 1, .position = 2, .sample = 0},
                   {.row = 1, .count = 1, .position = 4, .sample = 1}});
  const Tensor q = random_tensor({2, 2, 3}, 3);
  const Tensor both = attention(q, step, cache_k, cache_v, cached, Mask::causal());
  const Rows alone({{.row = 0, .count = 1, .position = 4, .sample = 1}});
  const Tensor second = attention(q.rows(1, 1), alone, cache_k.rows(6, 5), cache_v.rows(6, 5),
                                  Rows::packed({5}), Mask::causal());
  EXPECT_TRUE(same_bits(both.rows(1, 1), second));
}

TEST(Attention, R02_BooleanMaskAndMinusInfinityAgreeBitForBitAndHiddenRowsAreZero) {
  const Rows rows = Rows::equal(1, 8);
  std::vector<int> allowed(64, 1);
  for (size_t i = 32; i < 64; ++i) allowed[i] = 0;
  allowed[3] = allowed[17] = 0;
  std::vector<double> minus(64);
  for (size_t i = 0; i < 64; ++i) minus[i] = allowed[i] == 1 ? 0 : -INFINITY;
  for (const DType dtype : {DType::f64, DType::f32}) {
    const AttentionProblem problem(rows, rows, 2, 3, 4, dtype);
    for (AttentionOptions options : kTiles) {
      const Tensor by_mask = problem.run(Mask::keep(bools(allowed, {8, 8})), options);
      options.bias = Tensor::from(minus, {8, 8}).to(dtype);
      EXPECT_TRUE(same_bits(problem.run({}, options), by_mask));
      EXPECT_EQ(values_of(by_mask.rows(4, 4)), std::vector<double>(32, 0));
    }
  }
  // -1e9 is another thing: in f32 a row that has nothing else is uniform over its keys.
  for (double& m : minus) m = m < 0 ? -1e9 : 0;
  const AttentionProblem problem(rows, rows, 2, 3, 4, DType::f32);
  AttentionOptions large;
  large.bias = Tensor::from(minus, {8, 8}).to(DType::f32);
  const std::vector<double> v = values_of(problem.v);
  const std::vector<double> out = values_of(problem.run({}, large).rows(4, 1));
  for (size_t c = 0; c < 8; ++c) {
    double mean = 0;
    for (size_t j = 0; j < 8; ++j) mean += v[j * 8 + c] / 8;
    EXPECT_NEAR(out[c], mean, 1e-6);
  }
}

TEST(Attention, R03_EmptySentencesAndBatchesGiveEmptyResults) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Rows lengths = Rows::packed({5, 3, 1, 0});
    const AttentionProblem problem(lengths, lengths, 2, 3, 4, dtype);
    const AttentionResult all = problem.run_with_weights();
    EXPECT_EQ(all.weights.shape(), Shape({4, 2, 5, 5}));
    int64_t at = 0;
    for (const int64_t T : {5, 3, 1}) {
      const Rows alone = Rows::packed({T});
      EXPECT_TRUE(same_bits(all.context.rows(at, T),
                            attention(problem.q.rows(at, T), alone, problem.k.rows(at, T),
                                      problem.v.rows(at, T), alone)));
      at += T;
    }
    const AttentionProblem no_keys(Rows::packed({3, 2}), Rows::packed({0, 2}), 2, 3, 4, dtype);
    EXPECT_EQ(values_of(no_keys.run().rows(0, 3)), std::vector<double>(24, 0));
    for (const Rows& none : {Rows(), Rows::equal(3, 0)}) {
      const AttentionProblem empty(none, none, 2, 3, 4, dtype);
      EXPECT_EQ(empty.run(Mask::causal()).shape(), Shape({0, 2, 4}));
      EXPECT_EQ(empty.run_with_weights().weights.shape(), Shape({none.sentences(), 2, 0, 0}));
    }
    const AttentionProblem no_batch(Rows(), Rows(), 2, 3, 4, dtype);
    AttentionOptions options;
    options.bias = Tensor::zeros({7, 7}, dtype);
    EXPECT_EQ(no_batch.run(Mask::keep(bools(std::vector<int>(49, 1), {7, 7})), options).dim(0), 0);
  }
}

TEST(Attention, R12_MasksAreCombinedAsPermissionsSoNothingOverflows) {
  // Left-padded [pad, token] under a causal mask as well, scores far below zero.
  const Rows rows = Rows::equal(1, 2);
  AttentionProblem problem(rows, rows, 1, 4, 4, DType::f32);
  problem.q = Tensor::full({2, 1, 4}, DType::f32, 3e18);
  problem.k = Tensor::full({2, 1, 4}, DType::f32, -3e18);
  const Mask mask = Mask::causal() & Mask::keep(bools({0, 1}, {2})) & Mask::window(1);
  const AttentionResult result = problem.run_with_weights(mask);
  EXPECT_EQ(values_of(result.weights), (std::vector<double>{0, 0, 0, 1}));
  EXPECT_EQ(values_of(result.context.rows(0, 1)), std::vector<double>(4, 0));
  EXPECT_TRUE(same_bits(result.context.rows(1, 1), problem.v.rows(1, 1)));
}

TEST(Attention, DropoutIsThatOfTheWeightsElements) {
  const Rows rows = Rows::packed(std::vector<int64_t>{6, 9}, std::vector<uint64_t>{40, 7});
  const AttentionProblem problem(rows, rows);
  AttentionOptions options = small_tiles();
  options.dropout = {0.3, {8, 9}};
  const Tensor got = problem.run({}, options);
  const auto plain =
      testing::plain_attention(problem.q, rows, problem.k, problem.v, rows, all_seen);
  const std::vector<double> v = values_of(problem.v), out = values_of(got);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 2; ++h) {
      const PhiloxKey key = philox_key_of_head(options.dropout.key, h);
      for (int64_t i = 0; i < rows[b].count; ++i) {
        for (int64_t c = 0; c < 4; ++c) {
          double wanted = 0;
          for (int64_t j = 0; j < rows[b].count; ++j) {
            const uint32_t word = philox_element(key, rows[b].sample, static_cast<uint32_t>(i),
                                                 static_cast<uint32_t>(j));
            if (word < dropout_threshold(0.3)) continue;
            wanted += plain.weights[static_cast<size_t>(b * 2 + h)]
                                   [static_cast<size_t>(i * rows[b].count + j)] /
                      0.7 * v[static_cast<size_t>(((rows[b].row + j) * 2 + h) * 4 + c)];
          }
          EXPECT_NEAR(out[static_cast<size_t>(((rows[b].row + i) * 2 + h) * 4 + c)], wanted, 1e-13);
        }
      }
    }
  }
  EXPECT_TRUE(same_bits(problem.run({}, options), got));
  // Weights that are handed out are those before dropout.
  EXPECT_TRUE(same_bits(problem.run_with_weights({}, options).weights,
                        problem.run_with_weights({}, small_tiles()).weights));
}

TEST(Attention, R09_NoHeadsOrChannelsAreAnError) {
  const Rows rows = Rows::packed({2});
  const auto run = [&](int64_t H, int64_t Dk, int64_t Dv) {
    return error_of([&] { AttentionProblem(rows, rows, H, Dk, Dv).run(); });
  };
  EXPECT_NE(run(0, 3, 3).find("at least one head"), std::string::npos);
  EXPECT_NE(run(2, 0, 3).find("Dk 0"), std::string::npos);
  EXPECT_NE(run(2, 3, 0).find("Dv 0"), std::string::npos);
}

TEST(Attention, WrongInputsAreErrors) {
  const Rows rows = Rows::packed({2, 3});
  const AttentionProblem p(rows, rows);
  const auto with = [&](const char* word, auto&& spoil) {
    AttentionProblem other = p;
    AttentionOptions options;
    spoil(other, options);
    const std::string message = error_of([&] { other.run({}, options); });
    EXPECT_NE(message.find(word), std::string::npos) << message;
  };
  with("keys with 3", [](auto& o, auto&) { o.k = random_tensor({5, 3, 2}, 1); });
  with("width 3", [](auto& o, auto&) { o.k = random_tensor({5, 2, 2}, 1); });
  with("as many values", [](auto& o, auto&) { o.v = random_tensor({4, 2, 4}, 1); });
  with("(10, 3)", [](auto& o, auto&) { o.q = o.q.reshape({10, 3}); });
  with("one type", [](auto& o, auto&) { o.v = o.v.to(DType::f32); });
  with("rows of queries", [](auto& o, auto&) { o.queries = Rows::packed({2, 2}); });
  with("rows of keys", [](auto& o, auto&) { o.keys = Rows::packed({2, 4}); });
  with("sentences of keys", [](auto& o, auto&) { o.keys = Rows::packed({5}); });
  with("finite scale", [](auto&, auto& options) { options.scale = NAN; });
  with("equal lengths", [](auto&, auto& options) { options.bias = random_tensor({3, 3}, 1); });
  const Rows equal = Rows::equal(1, 5);
  with("(5, 5) (all but", [&](auto& o, auto& options) {
    o.queries = o.keys = equal;
    options.bias = random_tensor({5, 4}, 1);
  });
}

}  // namespace
}  // namespace rapt
