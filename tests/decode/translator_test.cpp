#include "rapt/decode/translator.h"

#include <cerrno>
#include <tuple>

#include "rapt/text/train_subwords.h"
#include "tests/base/files.h"
#include "tests/decode/lines.h"

namespace rapt::decode {
namespace {

using namespace testing;
namespace fs = std::filesystem;

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : names_in(folder)) files[name] = text_of(folder / name);
  return files;
}

TEST(Translator, ComesBackFromItsFolder) {
  const TemporaryFolder folder;
  const Translator saved = make_translator(1);
  save_translator(saved, folder.path() / "model");
  EXPECT_EQ(names_in(folder.path() / "model"),
            (std::set<std::string>{"config.json", "model.safetensors", "source_vocabulary.txt",
                                   "target_vocabulary.txt"}));
  const Translator loaded = load_translator(folder.path() / "model");
  const auto before = translations(saved, "a b\nc d e\n"),
             after = translations(loaded, "a b\nc d e\n");
  ASSERT_EQ(after.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(after[i].text, before[i].text);
    EXPECT_EQ(after[i].decoded.score, before[i].decoded.score);
  }
}

// Every write, fsync and rename of a save fails once; and each of them always.
TEST(Translator, R61_AFailedSaveLeavesTheOldModel) {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  save_translator(make_translator(1), model);
  const auto old = files_of(model);
  const Translator newer = make_translator(2);
  int failures = 0;
  for (const char* operation : {"write", "fsync", "exchange"}) {
    for (int turn = 0; turn < 30; ++turn) {
      const FaultScope fault(operation, operation[0] == 'w' ? ENOSPC : EIO, turn);
      try {
        save_translator(newer, model);
      } catch (const Error& error) {
        ++failures;
        EXPECT_EQ(error.kind(), ErrorKind::failure) << error.what();
        EXPECT_EQ(files_of(model), old) << operation << " " << turn;
        EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"model"});
        continue;
      }
      EXPECT_GT(turn, 1) << operation;
      set_file_fault(nullptr);
      EXPECT_NE(files_of(model), old);
      save_translator(make_translator(1), model);  // the old one again
      break;
    }
  }
  EXPECT_GT(failures, 12);
}

TEST(Translator, ASaveReplacesNothingButAModel) {
  const TemporaryFolder folder;
  const Translator t = make_translator(1);
  fs::create_directory(folder.path() / "empty");
  save_translator(t, folder.path() / "empty");
  put_text(folder.path() / "empty" / "notes.txt", "mine");
  EXPECT_NE(error_of([&] { save_translator(t, folder.path() / "empty"); }).find("notes.txt"),
            std::string::npos);
  EXPECT_EQ(text_of(folder.path() / "empty" / "notes.txt"), "mine");
  put_text(folder.path() / "file", "mine");
  EXPECT_NE(error_of([&] { save_translator(t, folder.path() / "file"); }).find("got a file"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              check_model_folder(folder.path() / "file" / "model");
            }).find("file is not a folder"),
            std::string::npos);
  check_model_folder(folder.path() / "a" / "b" / "c");  // folders above it are made
}

TEST(Translator, AVocabularyOverTheModelsEmbeddingsIsRefused) {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  save_translator(make_translator(1), model);
  put_text(model / kTargetVocabulary, "<pad>\n<s>\n</s>\n<unk>\nx\ny\nz\nzz\n");
  EXPECT_NE(error_of([&] { load_translator(model); }).find("the first without one is zz"),
            std::string::npos);
  fs::remove(model / kTargetVocabulary);
  EXPECT_NE(error_of([&] { load_translator(model); }).find("no vocabulary"), std::string::npos);
}

TEST(AttentionsOf, HaveARowForEachTokenThatTheDecoderReads) {
  const Translator t = make_translator(1);
  const std::vector<int32_t> source = {4, 5, 6};
  const std::vector<int32_t> read = decoder_input(t, {4, 5});
  EXPECT_EQ(read, (std::vector<int32_t>{1, 4, 5}));
  EXPECT_EQ(decoder_input(t, std::vector<int32_t>(12, 4)).size(), 12u);  // not 13: max_len
  const models::Attentions attentions = attentions_of(t, source, read);
  ASSERT_EQ(attentions.cross.size(), 2u);
  EXPECT_EQ(attentions.cross[1].shape(), (Shape{1, 3, 3, 3}));
  EXPECT_EQ(spellings(t.target, read), (std::vector<std::string>{"<s>", "x", "y"}));
}

// A translator whose tokens are the pieces of `source` and `target`.
Translator with_subwords(const text::Subwords& source, const text::Subwords& target) {
  Translator t;
  models::EncoderDecoderConfig config = small_config("rapt");
  config.src_vocab_size = source.size();
  config.tgt_vocab_size = target.size();
  config.unk_id = 3;
  t.model = std::make_unique<models::EncoderDecoder>(make_model(config, DType::f32, 1));
  t.source = source;
  t.target = target;
  return t;
}

text::Subwords learn(std::string_view line, int64_t vocabulary) {
  int left = 30;
  return text::train_subwords(
      [&]() -> std::optional<std::string_view> {
        if (left-- == 0) return std::nullopt;
        return line;
      },
      {.vocabulary = vocabulary});
}

TEST(Translator, WithSubwordsComesBackFromItsFolder) {
  const text::Subwords one = learn("the dog sleeps", 24),
                       other = learn("der Hund schl\u00E4ft", 26);
  const TemporaryFolder folder;
  for (const auto& [source, target, files] :
       std::vector<std::tuple<text::Subwords, text::Subwords, std::set<std::string>>>{
           {one, other, {"source_subwords.model", "target_subwords.model"}},
           {one, one, {"subwords.model"}}}) {
    const Translator saved = with_subwords(source, target);
    save_translator(saved, folder.path() / "model");  // over the one before
    std::set<std::string> expected = files;
    expected.insert({"config.json", "model.safetensors"});
    EXPECT_EQ(names_in(folder.path() / "model"), expected);
    const Translator loaded = load_translator(folder.path() / "model");
    ASSERT_NE(loaded.source.subwords(), nullptr);
    EXPECT_EQ(loaded.source.subwords()->bytes(), source.bytes());
    EXPECT_EQ(loaded.target.subwords()->bytes(), target.bytes());
    const std::string text = "the dog\n\n \u3000\n<s> \u4ECA\n";
    const auto before = translations(saved, text), after = translations(loaded, text);
    ASSERT_EQ(after.size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(after[i].text, before[i].text);
    EXPECT_EQ(after[1].text, "");
    EXPECT_EQ(after[2].text, "");
  }
}

TEST(Translator, R49_MorePiecesThanEmbeddingsAreRefused) {
  const text::Subwords small = learn("the dog", 16), large = learn("the dog sleeps", 24);
  ASSERT_LT(small.size(), large.size());
  const TemporaryFolder folder;
  save_translator(with_subwords(small, small), folder.path() / "model");
  put_text(folder.path() / "model" / kJointSubwords, large.bytes());
  const std::string complaint =
      testing::error_of([&] { load_translator(folder.path() / "model"); });
  EXPECT_NE(complaint.find(large.piece(small.size())), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("pieces"), std::string::npos) << complaint;
}

}  // namespace
}  // namespace rapt::decode
