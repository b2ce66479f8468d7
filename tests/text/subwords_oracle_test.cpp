// Our reading and applying of SentencePiece models against the library's.
#include <sentencepiece_processor.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rapt/base/file.h"
#include "tests/testing/testing.h"
#include "tests/text/subword_samples.h"

namespace rapt::text {
namespace {

class Oracle {
 public:
  explicit Oracle(const std::string& bytes) : ours_(Subwords::parse(bytes, "model")) {
    const auto status = theirs_.LoadFromSerializedProto(bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  void compare(const std::string& text) {
    const auto theirs = theirs_.EncodeAsImmutableProto(text);
    const std::vector<Subword> ours = ours_.cut(text);
    std::vector<int> their_ids, our_ids;
    for (size_t i = 0; i < theirs.pieces_size(); ++i)
      their_ids.push_back(static_cast<int>(theirs.pieces(static_cast<int>(i)).id()));
    for (const Subword& subword : ours) our_ids.push_back(subword.id);
    // Where the library lets text become a control piece, ours stays text.
    const auto is_control = [&](int id) { return theirs_.IsControl(id); };
    if (std::any_of(their_ids.begin(), their_ids.end(), is_control)) {
      EXPECT_TRUE(std::none_of(our_ids.begin(), our_ids.end(), is_control));
      return;
    }
    ASSERT_EQ(our_ids, their_ids) << ::testing::PrintToString(text);
    for (size_t i = 0; i < ours.size(); ++i) {
      const auto piece = theirs.pieces(static_cast<int>(i));
      EXPECT_EQ(ours[i].piece, piece.piece()) << ::testing::PrintToString(text);
      EXPECT_EQ(ours[i].begin, piece.begin()) << ::testing::PrintToString(text) << i;
      EXPECT_EQ(ours[i].end, piece.end()) << ::testing::PrintToString(text) << i;
    }
    compare_decoded(our_ids);
  }

  void compare_decoded(const std::vector<int>& ids) {
    std::string theirs;
    ASSERT_TRUE(theirs_.Decode(ids, &theirs).ok());
    EXPECT_EQ(ours_.decode(std::vector<int32_t>(ids.begin(), ids.end())), theirs)
        << ::testing::PrintToString(ids);
  }

  // Awkward texts, random ones, and random ids.
  void compare_all(int texts) {
    for (const std::string& text : awkward_texts()) compare(text);
    Rng rng(1);
    for (int i = 0; i < texts && !::testing::Test::HasFailure(); ++i) compare(random_text(rng));
    for (int i = 0; i < texts && !::testing::Test::HasFailure(); ++i) {
      std::vector<int> ids;
      for (int64_t n = rng.below(12); n > 0; --n)
        ids.push_back(static_cast<int>(
            rng.below(rng.below(2) == 0 ? std::min<int64_t>(ours_.size(), 300) : ours_.size())));
      compare_decoded(ids);
    }
  }

  const Subwords& ours() const { return ours_; }
  const sentencepiece::SentencePieceProcessor& theirs() const { return theirs_; }

 private:
  Subwords ours_;
  sentencepiece::SentencePieceProcessor theirs_;
};

struct Case {
  std::string name;
  SubwordTraining training;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class Trained : public ::testing::TestWithParam<Case> {};

TEST_P(Trained, IdsPiecesOffsetsAndTextAreTheLibrarys) {
  const Subwords model = sample_model(GetParam().training);
  Oracle oracle(model.bytes());
  oracle.compare_all(3000);
}

TEST_P(Trained, PiecesAndSpecialIdsAreTheLibrarys) {
  const Oracle oracle(sample_model(GetParam().training).bytes());
  const auto& ours = oracle.ours();
  const auto& theirs = oracle.theirs();
  ASSERT_EQ(ours.size(), theirs.GetPieceSize());
  for (int id = 0; id < theirs.GetPieceSize(); ++id) {
    EXPECT_EQ(ours.piece(id), theirs.IdToPiece(id));
    EXPECT_EQ(ours.kind(id) == PieceKind::control, theirs.IsControl(id));
    EXPECT_EQ(ours.kind(id) == PieceKind::unknown, theirs.IsUnknown(id));
    EXPECT_EQ(ours.kind(id) == PieceKind::byte, theirs.IsByte(id));
    EXPECT_EQ(ours.find(ours.piece(id)), id);
  }
  EXPECT_EQ(ours.special().pad, theirs.pad_id());
  EXPECT_EQ(ours.special().start, theirs.bos_id());
  EXPECT_EQ(ours.special().end, theirs.eos_id());
  EXPECT_EQ(ours.special().unk, theirs.unk_id());
}

const std::vector<std::string> kSymbols = {"<sep>", "[X]", "a,b \"c\""};

INSTANTIATE_TEST_SUITE_P(
    Models, Trained,
    ::testing::Values(
        Case{"unigram", {.vocabulary = 200}},
        Case{"unigram_symbols", {.vocabulary = 200, .user_symbols = kSymbols}},
        Case{"unigram_bytes",
             {.vocabulary = 420, .character_coverage = 0.99, .byte_fallback = true}},
        Case{"unigram_identity", {.vocabulary = 180, .normalisation = "identity"}},
        Case{"unigram_lower", {.vocabulary = 180, .normalisation = "nfkc_cf"}},
        Case{"bpe", {.vocabulary = 250, .model = SubwordModel::bpe}},
        Case{"bpe_symbols",
             {.vocabulary = 250, .model = SubwordModel::bpe, .user_symbols = kSymbols}},
        Case{"bpe_bytes",
             {.vocabulary = 450,
              .model = SubwordModel::bpe,
              .character_coverage = 0.99,
              .user_symbols = kSymbols,
              .byte_fallback = true}},
        Case{"words", {.vocabulary = 40, .model = SubwordModel::words}},
        Case{"characters",
             {.vocabulary = 90, .model = SubwordModel::characters, .user_symbols = kSymbols}}),
    [](const auto& test) { return test.param.name; });

// The settings that training does not offer, in the file's own format: field 3 is the normaliser's
// message, whose last fields win; field 2 the trainer's.
std::string with(std::string bytes, uint8_t message, std::string_view fields) {
  bytes += static_cast<char>(message << 3 | 2);
  bytes += static_cast<char>(fields.size());
  return bytes += fields;
}

TEST(SubwordsOracle, SettingsOfWhiteSpaceAreTheLibrarys) {
  using namespace std::string_view_literals;
  for (const SubwordModel kind : {SubwordModel::unigram, SubwordModel::bpe, SubwordModel::words}) {
    const std::string bytes = sample_model({.vocabulary = 200, .model = kind}).bytes();
    for (const auto& [message, fields] : std::vector<std::pair<uint8_t, std::string_view>>{
             {3, "\x18\x00"sv},            // no dummy prefix
             {3, "\x20\x00"sv},            // extra white space stays
             {3, "\x18\x00\x20\x00"sv},    // both
             {3, "\x28\x00"sv},            // spaces stay spaces
             {2, "\xC0\x01\x01"sv},        // the mark stands after a word
             {2, "\xE2\x02\x03???"sv}}) {  // the unknown's spelling
      SCOPED_TRACE(::testing::PrintToString(fields));
      Oracle(with(bytes, message, fields)).compare_all(500);
    }
  }
}

TEST(SubwordsOracle, UnusedPiecesAreTakenApartAsTheLibraryDoes) {
  for (const SubwordModel kind : {SubwordModel::unigram, SubwordModel::bpe}) {
    const Subwords model = sample_model({.vocabulary = 250, .model = kind});
    std::string bytes;
    for (size_t at = 0; at < model.bytes().size();) {  // each third piece becomes unused
      const auto size = static_cast<size_t>(static_cast<unsigned char>(model.bytes()[at + 1]));
      if (model.bytes()[at] != 0x0A || size > 100) {
        bytes += model.bytes().substr(at);
        break;
      }
      const std::string piece = model.bytes().substr(at + 2, size);
      at += 2 + size;
      const bool control = piece.find("\x18") != std::string::npos;
      const bool unused = !control && bytes.size() % 3 == 0;
      bytes += '\x0A';
      bytes += static_cast<char>(size + (unused ? 2 : 0));
      bytes += piece + (unused ? "\x18\x05" : "");
    }
    Oracle(bytes).compare_all(1000);
  }
}

TEST(SubwordsOracle, RealModelsGiveTheLibrarysIds) {
  RAPT_REQUIRE_DATA("tokenizers");
  for (const char* file :
       {"tokenizers/t5/t5_tokenizer_base.model", "tokenizers/nmt-marian-like/vocab.joint.spm",
        "spm-models/test_model.model", "spm-models/test_ja_model.model"}) {
    SCOPED_TRACE(file);
    Oracle(read_file(testing::data_dir() / file)).compare_all(2000);
  }
}

}  // namespace
}  // namespace rapt::text
