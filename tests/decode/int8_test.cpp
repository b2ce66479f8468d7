// Folders in int8: they are converted, and translate as those that are quantised when loaded.
#include <sstream>

#include "rapt/base/file.h"
#include "rapt/decode/convert.h"
#include "rapt/decode/translate.h"
#include "rapt/decode/translator.h"
#include "rapt/models/checkpoint.h"
#include "rapt/text/lines.h"
#include "tests/testing/translators.h"

namespace rapt::decode {
namespace {

using namespace testing;
namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
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
  for (const Weights weights : {Weights::f32, Weights::bf16})
    EXPECT_TRUE(contains(error_of([&] { load_translator(other(), weights); }), "int8"));
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
