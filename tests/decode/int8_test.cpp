// Translating in int8: mates change nothing; folders are converted and translate alike.
#include <sstream>

#include "rapt/base/file.h"
#include "rapt/base/runtime.h"
#include "rapt/decode/beam.h"
#include "rapt/decode/convert.h"
#include "rapt/decode/greedy.h"
#include "rapt/decode/translate.h"
#include "rapt/decode/translator.h"
#include "rapt/models/checkpoint.h"
#include "rapt/text/lines.h"
#include "tests/testing/translators.h"

namespace rapt::decode {
namespace {

using namespace testing;
namespace fs = std::filesystem;
using Sentences = std::vector<std::vector<int32_t>>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const Sentences kSentences = {{3, 4, 5}, {}, {6}, {7, 8, 3, 4, 4, 5}, {5, 5}};

TEST(Int8Decoding, MatesThreadsAndOrderChangeNothing) {
  models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 2);
  model.make_int8();
  const auto together = greedy(model, kSentences);
  const auto beams = beam_search(model, kSentences, {.beam = 3});
  for (const int threads : {1, 3}) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    for (size_t b = 0; b < kSentences.size(); ++b) {
      const auto one = std::span(kSentences).subspan(b, 1);
      const auto alone = greedy(model, one);
      EXPECT_EQ(alone[0].ids, together[b].ids);
      EXPECT_EQ(alone[0].score, together[b].score);
      const auto beam = beam_search(model, one, {.beam = 3});
      EXPECT_EQ(beam[0][0].ids, beams[b][0].ids);
      EXPECT_EQ(beam[0][0].log_probability, beams[b][0].log_probability);
    }
  }
}

TEST(Int8Decoding, ABeamOfOneIsGreedy) {
  models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 4);
  model.make_int8();
  const auto plain = greedy(model, kSentences);
  const auto beam = beam_search(model, kSentences, {.beam = 1});
  for (size_t b = 0; b < kSentences.size(); ++b) {
    EXPECT_EQ(beam[b][0].ids, plain[b].ids);
    EXPECT_EQ(beam[b][0].log_probability, plain[b].score);
  }
}

class Converting : public ::testing::Test {
 protected:
  Converting() {
    Translator t;
    models::EncoderDecoderConfig config = small_config("rapt");
    config.unk_id = 3;
    config.d_qk = config.d_v = 2;  // so that it can have any layout
    t.model = std::make_unique<models::EncoderDecoder>(make_model(config, DType::f32, 7));
    t.source = text::Vocabulary({"<pad>", "<s>", "</s>", "<unk>", "a", "b", "c", "d", "e"},
                                {.pad = 0, .unk = 3});
    t.target = text::Vocabulary({"<pad>", "<s>", "</s>", "<unk>", "x", "y", "z"},
                                {.pad = 0, .start = 1, .end = 2, .unk = 3});
    save_translator(t, model());
  }
  fs::path model() const { return folder_.path() / "model"; }
  fs::path other() const { return folder_.path() / "other"; }

  static std::vector<std::pair<std::string, double>> translations(const Translator& t) {
    std::istringstream input("a b\nc d e e\n\na\n");
    text::LineReader reader(input, "in");
    std::vector<std::pair<std::string, double>> all;
    translate_lines(t, reader, {}, [&](const Translation& line) {
      all.emplace_back(line.text, line.decoded.score);
    });
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(Converting, ToInt8TranslatesAsQuantisingWhenLoading) {
  convert(model(), other(), {.int8 = true});
  const auto stored = translations(load_translator(other(), Weights::stored));
  EXPECT_EQ(stored, translations(load_translator(other(), Weights::int8)));
  EXPECT_EQ(stored, translations(load_translator(model(), Weights::int8)));
  EXPECT_NE(stored, translations(load_translator(model(), Weights::stored)));
  EXPECT_EQ(translations(load_translator(model(), Weights::f32)),
            translations(load_translator(model(), Weights::stored)));
  EXPECT_TRUE(contains(error_of([&] { load_translator(other()); }), "int8"));
}

TEST_F(Converting, ToAnotherLayoutChangesNamesAlone) {
  convert(model(), other(), {.layout = "torch"});
  EXPECT_EQ(models::read_config(other()).layout, "torch");
  EXPECT_EQ(translations(load_translator(other())), translations(load_translator(model())));
  convert(other(), folder_.path() / "both", {.int8 = true, .layout = "rapt"});
  EXPECT_EQ(translations(load_translator(folder_.path() / "both", Weights::stored)),
            translations(load_translator(model(), Weights::int8)));
}

TEST_F(Converting, WhatCannotBeIsRefusedAndNothingIsWritten) {
  const auto refused = [&](const fs::path& from, const fs::path& to, const ConvertOptions& options,
                           const char* part) {
    const std::string error = error_of([&] { convert(from, to, options); });
    EXPECT_TRUE(contains(error, part)) << error;
  };
  refused(model(), other(), {}, "nothing would change");
  refused(model(), model(), {.int8 = true}, "another folder");
  refused(folder_.path() / "none", other(), {.int8 = true}, "does not exist");
  EXPECT_FALSE(fs::exists(other()));
  convert(model(), other(), {.int8 = true});
  refused(other(), folder_.path() / "third", {.layout = "torch"}, "int8");
  EXPECT_FALSE(fs::exists(folder_.path() / "third"));
  write_file(model() / "notes.txt", "mine");
  refused(other(), model(), {.layout = "torch"}, "notes.txt");
}

}  // namespace
}  // namespace rapt::decode
