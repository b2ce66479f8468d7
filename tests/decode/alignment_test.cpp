#include "rapt/decode/alignment.h"

#include <sstream>

#include "rapt/text/train_subwords.h"
#include "tests/decode/lines.h"

namespace rapt::decode {
namespace {

using namespace testing;

TEST(SoftAlignment, IsTheMeanOfTheHeadsOfTheLayerBeforeTheLast) {
  for (const int64_t layers : {1, 2, 3}) {
    models::EncoderDecoderConfig config = small_config("rapt");
    config.num_decoder_layers = layers;
    const models::EncoderDecoder model = make_model(config, DType::f64, 3);
    EXPECT_EQ(alignment_layer(model), layers == 3 ? 1 : 0);
    const std::vector<int32_t> source = {3, 4, 5, 8}, target = {4, 6, 3};
    models::Attentions attentions;
    model.forward(ids(source), Rows::packed({4}), ids({1, 4, 6}), Rows::packed({3}), attentions);
    const std::vector<double> heads =
        values_of(attentions.cross.at(static_cast<size_t>(alignment_layer(model))));  // (1,3,3,4)
    const Tensor soft = soft_alignment(model, source, target);
    ASSERT_EQ(soft.shape(), (Shape{3, 4}));
    const std::vector<double> found = values_of(soft);
    for (size_t t = 0; t < 3; ++t) {
      double sum = 0;
      for (size_t s = 0; s < 4; ++s) {
        double mean = 0;
        for (size_t h = 0; h < 3; ++h) mean += heads[(h * 3 + t) * 4 + s] / 3;
        EXPECT_NEAR(found[t * 4 + s], mean, 1e-14);
        sum += found[t * 4 + s];
      }
      EXPECT_NEAR(sum, 1, 1e-14);
    }
  }
}

TEST(SoftAlignment, OfAModelWithoutADecoderIsAnError) {
  models::EncoderDecoderConfig config = small_config("rapt");
  config.num_decoder_layers = 0;
  const models::EncoderDecoder model = make_model(config, DType::f32);
  EXPECT_EQ(error_of([&] { soft_alignment(model, {3}, {3}); }),
            "alignment: the model has no decoder layers");
}

TEST(SoftAlignment, TakesATargetThatFillsThePositions) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  EXPECT_EQ(soft_alignment(model, {3}, std::vector<int32_t>(12, 4)).shape(), (Shape{12, 1}));
}

std::vector<int32_t> most_looked_at(const models::EncoderDecoder& model,
                                    const std::vector<int32_t>& source,
                                    const std::vector<int32_t>& target) {
  const std::vector<double> soft = values_of(soft_alignment(model, source, target));
  std::vector<int32_t> best;
  for (size_t t = 0; t < target.size(); ++t) {
    const auto row = soft.begin() + static_cast<int64_t>(t * source.size());
    best.push_back(static_cast<int32_t>(
        std::max_element(row, row + static_cast<int64_t>(source.size())) - row));
  }
  return best;
}

TEST(AlignWords, OfWordsLinksEachToWhatItLookedAtMost) {
  const Translator t = make_translator(2);
  const std::string line = "a  c\tb d";
  const std::vector<int32_t> source = t.source.encode(line, "in:1"), target = {4, 6, 6, 5, 0, 4};
  const auto best = most_looked_at(*t.model, source, target);
  std::vector<Link> expected;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0) continue;  // padding, that no text shows
    expected.push_back({best[i], static_cast<int64_t>(i) - (i > 4 ? 1 : 0)});
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(align_words(t, line, source, target), expected);
  EXPECT_TRUE(align_words(t, "", {}, target).empty());
  EXPECT_TRUE(align_words(t, line, source, {}).empty());
}

TEST(AlignWords, OfSubwordsLinksTheWordsThatTheyLieIn) {
  int left = 30;
  const text::Subwords pieces = text::train_subwords(
      [&]() -> std::optional<std::string_view> {
        if (left-- == 0) return std::nullopt;
        return "the dog sleeps and the cat sees the house";
      },
      {.vocabulary = 30});
  Translator t;
  models::EncoderDecoderConfig config = small_config("rapt");
  config.src_vocab_size = config.tgt_vocab_size = pieces.size();
  config.max_len = 64;
  t.model = std::make_unique<models::EncoderDecoder>(make_model(config, DType::f32, 1));
  t.source = t.target = pieces;
  const std::string line = " the  doghouse \tsleeps ??", text = "the sleep cat and the dogs";
  const std::vector<int32_t> source = pieces.encode(line), target = pieces.encode(text);
  const std::vector<text::Subword> cut = pieces.cut(line), cut_text = pieces.cut(text);
  // The words by hand: "the" is 0, "doghouse" 1, "sleeps" 2, "??" 3.
  const auto word_of = [](const std::string& in, size_t end) {
    if (end == 0) return int64_t{0};  // the mark before the first word
    std::istringstream words(in.substr(0, end));
    int64_t count = 0;
    for (std::string word; words >> word;) ++count;
    return count - (in[end - 1] == ' ' || in[end - 1] == '\t' ? 0 : 1);
  };
  const auto best = most_looked_at(*t.model, source, target);
  std::vector<Link> expected;
  for (size_t i = 0; i < target.size(); ++i) {
    if (cut_text[i].end == 0) continue;  // no text shows it
    expected.push_back(
        {word_of(line, cut[static_cast<size_t>(best[i])].end), word_of(text, cut_text[i].end)});
  }
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  const auto links = align_words(t, line, source, target);
  EXPECT_EQ(links, expected);
  EXPECT_LE(links.back().source, 3);
  std::vector<bool> linked(6, false);
  for (const Link& link : links) linked.at(static_cast<size_t>(link.target)) = true;
  EXPECT_EQ(std::count(linked.begin(), linked.end(), true), 6);
}

TEST(Pharaoh, WritesSourceThenTarget) {
  EXPECT_EQ(pharaoh({}), "");
  EXPECT_EQ(pharaoh({{0, 0}, {1, 2}, {12, 1}}), "0-0 1-2 12-1");
}

}  // namespace
}  // namespace rapt::decode
