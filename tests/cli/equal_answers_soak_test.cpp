// Ten thousand lines of Multi30k by a model that the program trains: a line's translation and its
// score are the same bits, whatever stands beside it and however it comes.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "rapt/base/runtime.h"
#include "rapt/decode/translate.h"
#include "rapt/ops/softmax.h"
#include "tests/decode/lines.h"

namespace rapt::decode {
namespace {

using namespace testing;

constexpr size_t kLines = 10'000;

class EqualAnswers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!std::filesystem::exists(data_dir() / "multi30k") || data_dir().empty()) return;
    const TemporaryFolder folder;
    const std::string data = (data_dir() / "multi30k" / "train").string();
    const std::string command =
        std::string(std::getenv("RAPT_PROGRAM")) + " --quiet train --source " + data +
        ".de.gz --target " + data + ".en.gz --out " + (folder.path() / "model").string() +
        " --subwords 1000 --tie-embeddings three --d-model 32 --nhead 4 --dim-feedforward 64"
        " --layers 2 --max-len 256 --steps 300 --learning-rate 0.01 --warmup 50";
    ASSERT_EQ(std::system(command.c_str()), 0);
    const auto load = [&](Weights weights) {
      return std::make_unique<Translator>(load_translator(folder.path() / "model", weights));
    };
    translator_ = load(Weights::f32);
    frozen_[0] = load(Weights::bf16);
    frozen_[1] = load(Weights::int8);
    text::LineReader reader(data + ".de.gz");
    while (lines_.size() < kLines) lines_.emplace_back(*reader.next());
  }
  static void TearDownTestSuite() {
    for (auto* one : {&translator_, &frozen_[0], &frozen_[1]}) one->reset();
  }

  void SetUp() override { RAPT_REQUIRE_DATA("multi30k"); }

  static std::vector<Translation> translate(const std::vector<std::string>& lines,
                                            const TranslateOptions& options, int threads,
                                            const Translator& translator = *translator_) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return translations(translator, text, options);
  }

  static void expect_alike(const Translation& a, const Translation& b) {
    EXPECT_EQ(a.text, b.text) << b.line;
    EXPECT_EQ(a.decoded.ids, b.decoded.ids) << b.line;
    EXPECT_EQ(a.decoded.score, b.decoded.score) << b.line;  // bits
    ASSERT_EQ(a.n_best.size(), b.n_best.size());
    for (size_t i = 0; i < a.n_best.size(); ++i) {
      EXPECT_EQ(a.n_best[i].text, b.n_best[i].text) << b.line;
      EXPECT_EQ(a.n_best[i].hypothesis.score, b.n_best[i].hypothesis.score) << b.line;
    }
  }

  // Line by line on one thread is what everything else must be.
  static void expect_equal_however(TranslateOptions options,
                                   const Translator& translator = *translator_) {
    options.batch = 1;
    options.ready = [] { return false; };
    const auto alone = translate(lines_, options, 1, translator);
    ASSERT_EQ(alone.size(), kLines);
    options.ready = {};
    for (const auto& [batch, threads] : {std::pair(32, 2), std::pair(1000, 3)}) {
      options.batch = batch;
      const auto together = translate(lines_, options, threads, translator);
      ASSERT_EQ(together.size(), kLines);
      for (size_t i = 0; i < kLines; ++i) expect_alike(together[i], alone[i]);
    }
    options.batch = 7;
    const auto reversed = translate({lines_.rbegin(), lines_.rend()}, options, 2, translator);
    ASSERT_EQ(reversed.size(), kLines);
    for (size_t i = 0; i < kLines; ++i) expect_alike(reversed[kLines - 1 - i], alone[i]);
  }

  static std::unique_ptr<Translator> translator_, frozen_[2];
  static std::vector<std::string> lines_;
};

std::unique_ptr<Translator> EqualAnswers::translator_, EqualAnswers::frozen_[2];
std::vector<std::string> EqualAnswers::lines_;

TEST_F(EqualAnswers, R31_OfGreedyDecoding) { expect_equal_however({}); }

TEST_F(EqualAnswers, R31_OfABeam) {
  expect_equal_however({.beam = BeamOptions{.beam = 4,
                                            .n_best = 4,
                                            .max_length_ratio = kLengthRatio,
                                            .max_length_extra = kLengthExtra}});
}

TEST_F(EqualAnswers, R31_OfFrozenModels) {
  for (const auto& frozen : frozen_) expect_equal_however({}, *frozen);
}

TEST_F(EqualAnswers, R30_ABeamOfOneIsGreedy) {
  const auto best = translate(lines_, {}, 2);
  const auto of_one = translate(lines_,
                                {.beam = BeamOptions{.beam = 1,
                                                     .max_length_ratio = kLengthRatio,
                                                     .max_length_extra = kLengthExtra}},
                                2);
  for (size_t i = 0; i < kLines; ++i) {
    EXPECT_EQ(of_one[i].decoded.ids, best[i].decoded.ids);
    EXPECT_EQ(of_one[i].decoded.score, best[i].decoded.score);
  }
}

// Each token is the best of the whole computation's row, and the sum of their log-probabilities is
// the score, to the last bit.
TEST_F(EqualAnswers, R33_OfTheCacheAndOfTheWholeComputation) {
  const models::EncoderDecoder& model = *translator_->model;
  for (const Translation& line : translate(lines_, {}, 2)) {
    std::vector<int32_t> read = {model.config().start_id}, chosen = line.decoded.ids;
    read.insert(read.end(), chosen.begin(), chosen.end());
    if (line.decoded.ended) chosen.push_back(model.config().end_id);
    read.resize(chosen.size());
    const auto rows = [](const std::vector<int32_t>& x) {
      return Rows::packed({static_cast<int64_t>(x.size())});
    };
    const Tensor logits =
        model.forward(ids(line.source), rows(line.source), ids(read), rows(read), Pass());
    const Tensor log_sums = log_sum_exp(logits);
    const int64_t V = logits.dim(1);
    double score = 0;
    for (size_t t = 0; t < chosen.size(); ++t) {
      const float* row = logits.data<float>() + static_cast<int64_t>(t) * V;
      ASSERT_EQ(std::max_element(row, row + V) - row, chosen[t]) << line.line << " " << t;
      score += static_cast<double>(row[chosen[t]]) - static_cast<double>(log_sums.data<float>()[t]);
    }
    EXPECT_EQ(score, line.decoded.score) << line.line;
  }
}

}  // namespace
}  // namespace rapt::decode
