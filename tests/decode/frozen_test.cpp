// Decoding with models that are frozen in bf16 and in int8: mates change nothing, a beam of one is
// greedy, answers are near those of f32, and nothing else can be done with them.
#include <cmath>

#include "rapt/base/runtime.h"
#include "rapt/decode/alignment.h"
#include "rapt/decode/beam.h"
#include "rapt/decode/greedy.h"
#include "rapt/nn/module.h"
#include "tests/testing/translators.h"

namespace rapt::decode {
namespace {

using namespace testing;
using models::EncoderDecoder;
using Sentences = std::vector<std::vector<int32_t>>;

const Sentences kSentences = {{3, 4, 5}, {}, {6}, {7, 8, 3, 4, 4, 5}, {5, 5}};

struct Frozen {
  const char* name;
  void (EncoderDecoder::*freeze)();
  double nearness;  // of log-probabilities to those of f32

  EncoderDecoder model(uint64_t seed) const {
    EncoderDecoder model = make_model(small_config("rapt"), DType::f32, seed);
    (model.*freeze)();
    return model;
  }
};

class FrozenDecoding : public ::testing::TestWithParam<Frozen> {};

TEST_P(FrozenDecoding, MatesThreadsAndOrderChangeNothing) {
  const EncoderDecoder model = GetParam().model(2);
  const auto together = greedy(model, kSentences);
  for (const int64_t beam : {3, 4}) {
    const auto beams = beam_search(model, kSentences, {.beam = beam});
    for (const int threads : {1, 3}) {
      Runtime runtime({.threads = threads, .log = {}});
      const Runtime::Scope scope(runtime);
      for (size_t b = 0; b < kSentences.size(); ++b) {
        const auto one = std::span(kSentences).subspan(b, 1);
        const auto alone = greedy(model, one);
        EXPECT_EQ(alone[0].ids, together[b].ids);
        EXPECT_EQ(alone[0].score, together[b].score);
        const auto best = beam_search(model, one, {.beam = beam});
        EXPECT_EQ(best[0][0].ids, beams[b][0].ids);
        EXPECT_EQ(best[0][0].log_probability, beams[b][0].log_probability);
      }
    }
  }
}

TEST_P(FrozenDecoding, ABeamOfOneIsGreedy) {
  const EncoderDecoder model = GetParam().model(4);
  const auto plain = greedy(model, kSentences);
  const auto beam = beam_search(model, kSentences, {.beam = 1});
  for (size_t b = 0; b < kSentences.size(); ++b) {
    EXPECT_EQ(beam[b][0].ids, plain[b].ids);
    EXPECT_EQ(beam[b][0].log_probability, plain[b].score);
  }
}

// What f32 writes, forced upon the frozen one.
TEST_P(FrozenDecoding, ScoresAreNearThoseOfF32) {
  const EncoderDecoder precise = make_model(small_config("rapt"), DType::f32, 5);
  const EncoderDecoder model = GetParam().model(5);
  const auto expected = greedy(precise, kSentences);
  Sentences prefixes;
  for (const Decoded& one : expected) prefixes.push_back(one.ids);
  const auto close = greedy(model, kSentences, {.max_length = 12, .prefixes = prefixes});
  const auto same = greedy(precise, kSentences, {.max_length = 12, .prefixes = prefixes});
  for (size_t b = 0; b < kSentences.size(); ++b) {
    if (close[b].ids != same[b].ids) continue;  // they may end elsewhere
    EXPECT_NEAR(close[b].score, same[b].score,
                GetParam().nearness * static_cast<double>(1 + close[b].ids.size()))
        << b;
  }
}

TEST_P(FrozenDecoding, CoverageAndAlignmentsWork) {
  const EncoderDecoder model = GetParam().model(6);
  const auto covered = beam_search(model, kSentences, {.beam = 4, .coverage_penalty = 0.2});
  EXPECT_LE(covered[3][0].score, 0);
  const Tensor looked = soft_alignment(model, kSentences[3], {4, 5});  // (2, 6)
  for (int64_t t = 0; t < 2; ++t) {
    double sum = 0;
    for (int64_t s = 0; s < 6; ++s)
      sum += static_cast<double>(looked.data<float>()[t * looked.dim(1) + s]);
    EXPECT_NEAR(sum, 1, 1e-2);
  }
}

TEST_P(FrozenDecoding, NothingElseCanBeDoneWithIt) {
  const EncoderDecoder model = GetParam().model(7);
  for (const NamedParameter& p : nn::parameters(model)) {
    if (p.parameter.shape().rank() != 2) continue;
    EXPECT_FALSE(p.parameter.has_value()) << p.name;
    EXPECT_NE(error_of([&] { p.value(); }).find("frozen"), std::string::npos);
  }
  Gradients gradients;
  const Tensor source = Tensor::from(std::vector<int32_t>{3, 4}, {2});
  EXPECT_NE(error_of([&] {
              model.encode(source, Rows::packed({2}), Pass::train(gradients, 0, 0));
            }).find("frozen"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(In, FrozenDecoding,
                         ::testing::Values(Frozen{"bf16", &EncoderDecoder::make_bf16, 0.05},
                                           Frozen{"int8", &EncoderDecoder::make_int8, 0.05}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rapt::decode
