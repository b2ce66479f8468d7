// What must be equal, and how exactly, shown on a small model that is made of ops.
#include "rapt/base/runtime.h"
#include "tests/ops/small_block.h"

namespace rapt {
namespace {

using testing::bools;
using testing::difference;
using testing::ids;
using testing::random_tensor;
using testing::same_bits;
using testing::SmallBlock;
using testing::some_ids;

const std::vector<DType> kTypes = {DType::f64, DType::f32};
constexpr double kDropout = 0.1;

// The loss and the gradient of every parameter of a step over packed sentences.
std::vector<Tensor> train(const SmallBlock& model, const std::vector<int64_t>& lengths,
                          const std::vector<int32_t>& tokens, const std::vector<int32_t>& targets) {
  Gradients gradients;
  const Pass pass = Pass::train(gradients, 5, 9);
  const Loss loss = cross_entropy(
      model.forward(ids(tokens), Rows::packed(lengths), Mask::causal(), pass, kDropout),
      ids(targets), {.label_smoothing = 0.1});
  backward(loss.sum);
  std::vector<Tensor> result = {loss.sum};
  for (const NamedParameter& p : model.parameters()) result.push_back(gradients.of(p.parameter));
  return result;
}

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << i;
}

TEST(Equalities, OneThreadAndManyAndTheSameRunTwiceGiveTheSameBits) {
  for (const DType dtype : kTypes) {
    const SmallBlock model(dtype);
    const std::vector<int64_t> lengths = {70, 1, 0, 33, 57};
    const auto run = [&](int threads) {
      Runtime runtime({.threads = threads, .log = {}});
      const Runtime::Scope scope(runtime);
      testing::poison_free_memory({161 * 64, 161 * 300, 64});
      return train(model, lengths, some_ids(161, 300, 1), some_ids(161, 300, 2));
    };
    const std::vector<Tensor> one = run(1);
    expect_same(run(1), one);
    for (const int threads : {2, 3, 8}) expect_same(run(threads), one);
  }
}

TEST(Equalities, AFrozenModelGivesASentenceTheSameBitsAloneAndWithAnyMates) {
  for (const DType dtype : kTypes) {
    const SmallBlock model(dtype);
    const std::vector<int64_t> lengths = {1, 5, 33, 70, 2};
    std::vector<Tensor> alone;
    for (size_t i = 0; i < lengths.size(); ++i) {
      alone.push_back(model.forward(ids(some_ids(lengths[i], 300, i)), Rows::packed({lengths[i]}),
                                    Mask::causal(), Pass::inference(), kDropout));
    }
    for (const std::vector<size_t>& order : std::vector<std::vector<size_t>>{
             {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0}, {1, 1, 3}, {0, 0, 0, 0, 0, 0, 0, 0, 0}}) {
      std::vector<int64_t> batch;
      std::vector<int32_t> tokens;
      for (const size_t i : order) {
        batch.push_back(lengths[i]);
        for (const int32_t id : some_ids(lengths[i], 300, i)) tokens.push_back(id);
      }
      const Tensor together = model.forward(ids(tokens), Rows::packed(batch), Mask::causal(),
                                            Pass::inference(), kDropout);
      int64_t at = 0;
      for (const size_t i : order) {
        EXPECT_TRUE(same_bits(together.rows(at, lengths[i]), alone[i])) << i;
        at += lengths[i];
      }
    }
  }
}

TEST(Equalities, CachedStepsOfAFrozenModelEqualTheRowsOfTheWholeBitForBit) {
  for (const DType dtype : kTypes) {
    const SmallBlock model(dtype);
    const int64_t T = 37;
    const std::vector<int32_t> tokens = some_ids(T, 300, 3);
    const Tensor whole =
        model.forward(ids(tokens), Rows::packed({T}), Mask::causal(), Pass::inference(), 0);
    const Tensor keys = Tensor::zeros({64, 4, 16}, dtype),
                 values = Tensor::zeros({64, 4, 16}, dtype);
    for (int64_t t = 0; t < T; ++t) {
      const Tensor row = model.step(tokens[static_cast<size_t>(t)], t, keys, values);
      EXPECT_TRUE(same_bits(row, whole.rows(t, 1))) << t;
    }
  }
}

TEST(Equalities, PackedAndPaddedAgree) {
  for (const DType dtype : kTypes) {
    const SmallBlock model(dtype, 32, 50);
    const std::vector<int64_t> lengths = {5, 9, 0, 1};
    const int64_t T = 9;
    const auto tokens = some_ids(15, 50, 1), targets = some_ids(15, 50, 2);
    std::vector<int32_t> padded_tokens, padded_targets;
    std::vector<int> real;
    size_t at = 0;
    for (const int64_t length : lengths) {
      for (int64_t t = 0; t < T; ++t) {
        real.push_back(t < length);
        padded_tokens.push_back(t < length ? tokens[at] : 7);
        padded_targets.push_back(t < length ? targets[at++] : -100);
      }
    }
    Gradients gradients;
    const Tensor logits = model.forward(ids(padded_tokens), Rows::equal(4, T),
                                        Mask::causal() & Mask::keep(bools(real, {4 * T})),
                                        Pass::train(gradients, 5, 9), kDropout);
    const Loss loss = cross_entropy(logits, ids(padded_targets), {.label_smoothing = 0.1});
    EXPECT_EQ(loss.count, 15);
    backward(loss.sum);
    const std::vector<Tensor> packed = train(model, lengths, tokens, targets);
    const double limit = testing::equal_within(dtype);
    EXPECT_LE(difference(loss.sum, packed[0]), limit);
    size_t i = 1;
    for (const NamedParameter& p : model.parameters()) {
      EXPECT_LE(difference(gradients.of(p.parameter), packed[i]), limit) << i;
      ++i;
    }
  }
}

TEST(Equalities, R16_AccumulatedGradientsAreThoseOfTheLargeBatch) {
  for (const DType dtype : kTypes) {
    const SmallBlock model(dtype, 32, 50);
    const std::vector<int64_t> lengths = {11, 101, 1, 20};
    const auto tokens = some_ids(133, 50, 1), targets = some_ids(133, 50, 2);
    const std::vector<Tensor> whole = train(model, lengths, tokens, targets);
    Gradients gradients;
    const Pass pass = Pass::train(gradients, 5, 9);
    double sum = 0;
    int64_t at = 0;
    for (const auto& [first, last] : {std::pair<size_t, size_t>{0, 1}, {1, 2}, {2, 4}}) {
      const std::vector<int64_t> part(lengths.begin() + first, lengths.begin() + last);
      std::vector<uint64_t> samples;
      for (size_t s = first; s < last; ++s) samples.push_back(s);
      int64_t count = 0;
      for (const int64_t length : part) count += length;
      const auto slice = [&](const std::vector<int32_t>& from) {
        return ids({from.begin() + at, from.begin() + at + count});
      };
      const Loss loss = cross_entropy(
          model.forward(slice(tokens), Rows::packed(part, samples), Mask::causal(), pass, kDropout),
          slice(targets), {.label_smoothing = 0.1});
      backward(loss.sum);
      sum += loss.sum.item();
      at += count;
    }
    const double limit = testing::equal_within(dtype);
    EXPECT_NEAR(sum / whole[0].item(), 1, limit);
    size_t i = 1;
    for (const NamedParameter& p : model.parameters()) {
      EXPECT_LE(difference(gradients.of(p.parameter), whole[i]), limit) << i;
      ++i;
    }
  }
}

TEST(Equalities, R07_RecordedAndNotAgree) {
  for (const DType dtype : kTypes) {
    const SmallBlock model(dtype);
    const Rows rows = Rows::packed({20, 3, 40});
    const Tensor tokens = ids(some_ids(63, 300, 1));
    Gradients gradients;
    const Tensor recorded =
        model.forward(tokens, rows, Mask::causal(), Pass({.gradients = &gradients}), kDropout);
    const Tensor plain = model.forward(tokens, rows, Mask::causal(), Pass::inference(), kDropout);
    EXPECT_TRUE(recorded.recorded());
    EXPECT_FALSE(plain.recorded());
    EXPECT_LE(difference(recorded, plain), dtype == DType::f64 ? 1e-12 : 1e-6);
  }
}

TEST(Equalities, R04_ALaterTokenDoesNotMoveAnEarlierOneNorASentenceItsMates) {
  const SmallBlock model(DType::f32, 32, 50);
  const Rows rows = Rows::packed({6, 5});
  std::vector<int32_t> tokens = some_ids(11, 50, 1);
  const auto run = [&] {
    return model.forward(ids(tokens), rows, Mask::causal(), Pass::inference(), 0);
  };
  const Tensor before = run();
  tokens[3] = (tokens[3] + 1) % 50;
  const Tensor after = run();
  for (int64_t row = 0; row < 11; ++row) {
    EXPECT_EQ(same_bits(before.rows(row, 1), after.rows(row, 1)), row < 3 || row >= 6) << row;
  }
}

}  // namespace
}  // namespace rapt
