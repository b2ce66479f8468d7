#include "rapt/nn/cache.h"

#include "rapt/nn/decoder.h"
#include "tests/testing/tensors.h"

namespace rapt::nn {
namespace {

using testing::random_tensor;
using testing::same_bits;

void copy_row(Tensor to, int64_t to_row, const Tensor& from, int64_t from_row) {
  Tensor target = to.rows(to_row, 1);
  const Tensor source = from.rows(from_row, 1);
  std::memcpy(target.raw(), source.raw(),
              static_cast<size_t>(source.numel() * size_of(source.dtype())));
}

// Feeds the sentences of `x` to the decoder some tokens at a time, sentence b beginning with the
// others but ending when its tokens are used up, and returns the rows in the order of `rows`.
Tensor stepwise(const Decoder& decoder, const Tensor& x, const Rows& rows, const Memory& memory,
                int64_t tokens) {
  std::vector<DecoderLayerState> state = decoder.start(memory, Pass());
  Tensor y = empty_like(x);
  for (int64_t t = 0; t < rows.longest(); t += tokens) {
    std::vector<Segment> segments;
    std::vector<int64_t> from;
    int64_t row = 0;
    for (const Segment& s : rows.segments()) {
      const int64_t count = std::clamp<int64_t>(s.count - t, 0, tokens);
      segments.push_back({row, count, t, s.sample});
      for (int64_t i = 0; i < count; ++i) from.push_back(s.row + t + i);
      row += count;
    }
    Tensor part = Tensor::empty({row, x.dim(1)}, x.dtype());
    for (size_t i = 0; i < from.size(); ++i) copy_row(part, static_cast<int64_t>(i), x, from[i]);
    const Rows fresh(segments);
    const Tensor out = decoder.step(part, fresh, fresh, memory, state, Pass());
    for (size_t i = 0; i < from.size(); ++i) copy_row(y, from[i], out, static_cast<int64_t>(i));
  }
  return y;
}

class CachedDecoding : public ::testing::TestWithParam<std::tuple<DType, bool>> {};

TEST_P(CachedDecoding, IsTheWholeComputationBitForBit) {
  const auto [dtype, norm_first] = GetParam();
  Rng rng(1);
  const Decoder decoder({.d_model = 24,
                         .nhead = 3,
                         .d_qk = 7,
                         .d_v = 9,
                         .dim_feedforward = 50,
                         .norm_first = norm_first},
                        2, true, Init{.rng = &rng, .dtype = dtype});
  const Rows rows = Rows::packed({35, 1, 0, 12}), source = Rows::packed({4, 17, 3, 0});
  const Tensor x = random_tensor({48, 24}, 2, dtype);
  const Memory memory{random_tensor({24, 24}, 3, dtype), source, {}};
  const Tensor whole = decoder.forward(x, rows, Mask::causal(), memory, Pass());
  EXPECT_TRUE(same_bits(stepwise(decoder, x, rows, memory, 1), whole));
  EXPECT_TRUE(same_bits(stepwise(decoder, x, rows, memory, 5), whole));
}

INSTANTIATE_TEST_SUITE_P(TypesAndNorms, CachedDecoding,
                         ::testing::Combine(::testing::Values(DType::f32, DType::f64),
                                            ::testing::Bool()));

TEST(KeyValueCache, GrowsAndKeepsWhatItHolds) {
  KeyValueCache cache(2);
  const Tensor keys = random_tensor({40, 1, 3}, 1), values = random_tensor({40, 1, 2}, 2);
  for (int64_t t = 0; t < 40; ++t) {
    cache.append(
        keys.rows(t, 1), values.rows(t, 1),
        Rows({{0, t % 2 == 0, cache.length(0), 0}, {t % 2 == 0, t % 2 == 1, cache.length(1), 1}}));
  }
  const KeyValues all = cache.contents();
  for (int64_t t = 0; t < 20; ++t) {
    EXPECT_TRUE(same_bits(all.keys.rows(all.rows[1].row + t, 1), keys.rows(2 * t + 1, 1))) << t;
    EXPECT_TRUE(same_bits(all.values.rows(all.rows[0].row + t, 1), values.rows(2 * t, 1))) << t;
  }
  EXPECT_EQ(cache.length(0), 20);
}

TEST(KeyValueCache, ACopyGoesOnByItself) {
  KeyValueCache cache(2);
  const Tensor keys = random_tensor({9, 1, 3}, 1), values = random_tensor({9, 1, 2}, 2);
  std::vector<std::vector<int64_t>> held(2);  // which rows each sentence should hold
  int64_t next = 0;
  const auto append = [&](size_t b) {
    cache.append(keys.rows(next, 1), values.rows(next, 1),
                 Rows({{0, b == 0, cache.length(0), 0}, {b == 0, b == 1, cache.length(1), 1}}));
    held[b].push_back(next++);
  };
  const auto copy = [&](size_t from, size_t to) {
    cache.copy(static_cast<int64_t>(from), static_cast<int64_t>(to));
    held[to] = held[from];
  };
  const auto check = [&] {
    const KeyValues all = cache.contents();
    for (size_t b = 0; b < 2; ++b) {
      const Segment& s = all.rows[static_cast<int64_t>(b)];
      ASSERT_EQ(s.count, static_cast<int64_t>(held[b].size()));
      for (int64_t t = 0; t < s.count; ++t) {
        const int64_t row = held[b][static_cast<size_t>(t)];
        EXPECT_TRUE(same_bits(all.keys.rows(s.row + t, 1), keys.rows(row, 1))) << b << " " << t;
        EXPECT_TRUE(same_bits(all.values.rows(s.row + t, 1), values.rows(row, 1))) << b << " " << t;
      }
    }
  };
  for (const size_t b : {0, 0, 1}) append(b);
  copy(0, 1);  // the longer over the shorter
  check();
  for (const size_t b : {0, 1, 1}) append(b);
  copy(0, 1);  // the shorter over the longer, with a common start
  append(1);   // where the one before it stood
  check();
  copy(1, 0);
  append(0);
  copy(1, 1);
  check();
}

TEST(KeyValueCache, RefusesWhatDoesNotGoOn) {
  KeyValueCache cache(1);
  const Tensor one = random_tensor({1, 1, 3}, 1);
  cache.append(one, one, Rows({{0, 1, 0, 0}}));
  EXPECT_NE(testing::error_of([&] {
              cache.append(one, one, Rows({{0, 1, 5, 0}}));
            }).find("go on at position 1, got 5"),
            std::string::npos);
  EXPECT_NE(testing::error_of([&] {
              cache.append(one, one, Rows::packed({1, 0}));
            }).find("expected 1 sentences"),
            std::string::npos);
}

}  // namespace
}  // namespace rapt::nn
