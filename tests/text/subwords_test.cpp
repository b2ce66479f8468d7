#include "rapt/text/subwords.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "rapt/base/file.h"
#include "tests/testing/testing.h"
#include "tests/text/subword_samples.h"

namespace rapt::text {
namespace {

// A model file made by hand, field by field.
class FileMaker {
 public:
  FileMaker& piece(const std::string& text, float score, int kind) {
    std::string message = bytes_field(1, text) + '\x15';
    const auto bits = std::bit_cast<uint32_t>(score);
    for (int shift = 0; shift < 32; shift += 8) message += static_cast<char>(bits >> shift & 0xFF);
    message += '\x18';
    message += static_cast<char>(kind);
    bytes_ += bytes_field(1, message);
    return *this;
  }
  FileMaker& trainer(int model, bool byte_fallback = false) {
    bytes_ += bytes_field(
        2, {'\x18', static_cast<char>(model), '\x98', '\x02', static_cast<char>(byte_fallback)});
    return *this;
  }
  // A normaliser whose trie has these units, followed by `strings`.
  FileMaker& rules(const std::vector<uint32_t>& units, const std::string& strings) {
    std::string blob = little_endian(static_cast<uint32_t>(4 * units.size()));
    for (const uint32_t unit : units) blob += little_endian(unit);
    return raw_rules(blob + strings);
  }
  FileMaker& raw_rules(const std::string& blob) {
    bytes_ += bytes_field(3, bytes_field(2, blob));
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

  static std::string bytes_field(uint32_t id, const std::string& bytes) {
    std::string field(1, static_cast<char>(id << 3 | 2));
    size_t size = bytes.size();
    for (; size >= 0x80; size >>= 7) field += static_cast<char>(size | 0x80);
    return field + static_cast<char>(size) + bytes;
  }

 private:
  static std::string little_endian(uint32_t value) {
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
    return bytes;
  }
  std::string bytes_;
};

FileMaker small_file() {
  return FileMaker().piece("<unk>", 0, 2).piece("<s>", 0, 3).piece("</s>", 0, 3).piece("a", -1, 1);
}

// Parses, and if that succeeds uses the model. Either works or throws one Error (data).
bool survives(const std::string& bytes) {
  try {
    const Subwords model = Subwords::parse(bytes, "file");
    for (const char* text : {"a", " b\xC3\xA9 c", "\xFF<s>", "\u3000\uFF21\uFB01 e\u0301"})
      model.decode(model.encode(text));
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    return false;
  }
}

std::string complaint_of(const std::string& bytes) {
  return testing::error_of([&] { Subwords::parse(bytes, "file"); });
}

// Spaces for their marks.
std::string with_spaces(const std::string& text) {
  std::string spaced;
  for (size_t at = 0; at < text.size();) {
    const bool mark = text.compare(at, 3, "\u2581") == 0;
    spaced += mark ? ' ' : text[at];
    at += mark ? 3 : 1;
  }
  return spaced;
}

TEST(Subwords, DecodingGivesTheNormalisedText) {
  const Subwords bytes =
      sample_model({.vocabulary = 420, .character_coverage = 0.99, .byte_fallback = true});
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(rng);
    std::string spaced = with_spaces(bytes.normalise(text));
    if (spaced.starts_with(' ')) spaced.erase(0, 1);  // the space before the first word
    while (spaced.starts_with(' ')) spaced.erase(0, 1);
    EXPECT_EQ(bytes.decode(bytes.encode(text)), spaced) << ::testing::PrintToString(text);
  }
}

TEST(Subwords, R44_BytePiecesJoinToCharactersAndTextThatLooksLikeOneStaysText) {
  const Subwords model = sample_model({.vocabulary = 420,
                                       .character_coverage = 0.99,
                                       .byte_fallback = true,
                                       .normalisation = "identity"});
  EXPECT_EQ(model.decode(model.encode("foo \U0001F917 bar")), "foo \U0001F917 bar");
  EXPECT_EQ(model.decode(model.encode("<0x41> <0xF0>")), "<0x41> <0xF0>");
  for (const int32_t id : model.encode("<0x41>")) EXPECT_NE(model.piece(id), "<0x41>");
  // A run of bytes that forms no character: one U+FFFD a byte.
  const int32_t f0 = model.find("<0xF0>").value(), a = model.find("<0x41>").value();
  EXPECT_EQ(model.decode(std::vector<int32_t>{f0, f0, a}), "\uFFFD\uFFFDA");
}

TEST(Subwords, R45_TextNeverBecomesControlPieces) {
  for (const SubwordModel kind :
       {SubwordModel::unigram, SubwordModel::bpe, SubwordModel::words, SubwordModel::characters}) {
    const Subwords model = sample_model({.vocabulary = 200, .model = kind});
    for (const char* text : {"<s>", "</s>", "<pad>", "a </s> b", "<s><s>", "<unk>"}) {
      for (const int32_t id : model.encode(text))
        EXPECT_NE(model.kind(id), PieceKind::control) << text;
    }
  }
}

TEST(Subwords, PiecesBecomeTheirTextAgain) {
  for (const SubwordModel kind :
       {SubwordModel::unigram, SubwordModel::bpe, SubwordModel::words, SubwordModel::characters}) {
    const Subwords model = sample_model({.vocabulary = 200, .model = kind});
    for (const char* text : {"the unknown \u0E44\u0E17\u0E22 cat", "\u0E44", "", "a <s> b"}) {
      const std::vector<Subword> cut = model.cut(text);
      std::vector<std::string_view> pieces;
      for (const Subword& subword : cut) pieces.push_back(subword.piece);
      if (kind == SubwordModel::words && std::string_view(text).find('<') != std::string::npos)
        continue;
      // The library keeps the marks of unknown pieces; in text there are none.
      std::string plain = with_spaces(model.decode_pieces(pieces));
      if (plain.starts_with(' ')) plain.erase(0, 1);
      EXPECT_EQ(plain, text);
    }
  }
}

TEST(Subwords, OffsetsCoverTheLine) {
  const Subwords model = sample_model({.vocabulary = 200});
  const std::string text = "  the  dog's \uFB01ne \u4ECA\u5929 ";
  size_t end = 0;
  for (const Subword& subword : model.cut(text)) {
    EXPECT_GE(subword.begin, end);
    EXPECT_LE(subword.end, text.size());
    end = subword.end;
  }
  EXPECT_EQ(end, text.size() - 1);
}

TEST(Subwords, IdsOutsideTheModelAreRefused) {
  const Subwords model = Subwords::parse(small_file().bytes(), "file");
  for (const int32_t id : {-1, 4, 1 << 30}) {
    EXPECT_NE(testing::error_of([&] { model.decode(std::vector<int32_t>{id}); }).find("below 4"),
              std::string::npos);
  }
}

TEST(Subwords, AMegabyteIsCutInAMoment) {
  for (const SubwordModel kind : {SubwordModel::unigram, SubwordModel::bpe}) {
    const Subwords model = sample_model({.vocabulary = 200, .model = kind});
    std::string line;
    while (line.size() < 1'000'000) line += "the cat sat. aaaaaaa\u4ECA";
    EXPECT_EQ(model.decode(model.encode(line)).size(), line.size());
  }
}

TEST(SubwordFile, EachMistakeIsNamed) {
  const auto names = [](const std::string& bytes, const std::string& what) {
    EXPECT_NE(complaint_of(bytes).find(what), std::string::npos) << complaint_of(bytes);
  };
  names("", "without pieces");
  names("plain text, no model\n", "file");
  names(FileMaker().piece("a", 0, 1).bytes(), "unknown piece");
  names(small_file().piece("<unk2>", 0, 2).bytes(), "one unknown piece");
  names(small_file().piece("a", 0, 1).bytes(), "already");
  names(small_file().piece("", 0, 1).bytes(), "empty");
  names(small_file().piece("b", 0, 7).bytes(), "kind of piece");
  names(small_file().piece("b", NAN, 1).bytes(), "not finite");
  names(small_file().piece("b", INFINITY, 1).bytes(), "not finite");
  names(small_file().trainer(5).bytes(), "type of model");
  names(small_file().trainer(1, true).bytes(), "256 bytes");
  names(small_file().piece("<0x41>", 0, 6).bytes(), "byte_fallback");
  names(small_file().piece("<0xZZ>", 0, 6).trainer(1, true).bytes(), "byte piece");
  names(small_file().piece(std::string(70000, 'x'), 0, 1).bytes(), "bytes");
  names(small_file().piece("b\xC3", 0, 1).bytes(), "UTF-8");
  names("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", "cut off");
  names(std::string(20, '\xFF'), "does not end");
  names("\x0B", "wire type");
  EXPECT_NE(testing::error_of([] {
              Subwords::parse(small_file().bytes(), "file", {.vocabulary = 3});
            }).find("more than 3"),
            std::string::npos);
}

TEST(SubwordFile, R48_ATrieThatLeadsOutsideIsRefused) {
  const std::string strings("x\0", 2);
  std::vector<uint32_t> units(256, 0);
  const auto with_unit = [&](size_t at, uint32_t unit, const std::string& text) {
    std::vector<uint32_t> changed = units;
    changed[at] = unit;
    return small_file().rules(changed, text).bytes();
  };
  EXPECT_TRUE(survives(small_file().rules(units, strings).bytes()));
  // The root leads past the end; far past it; a value beyond the strings; a root that is a leaf.
  for (const uint32_t unit : {256u << 10, 0x1FFFFFu << 10 | 0x200u})
    EXPECT_NE(complaint_of(with_unit(0, unit, strings)).find("beyond its 256 units"),
              std::string::npos);
  std::vector<uint32_t> leads(256, 0);
  leads['a'] = 'a' | 1 << 8 | static_cast<uint32_t>('a' ^ 7) << 10;  // its value stands in unit 7
  for (const uint32_t value : {2u, 3u, 0x7FFFFFFFu}) {
    leads[7] = 0x80000000u | value;
    EXPECT_NE(complaint_of(small_file().rules(leads, strings).bytes()).find("of the strings"),
              std::string::npos);
  }
  leads[7] = 0x80000000u;
  const Subwords model = Subwords::parse(small_file().rules(leads, strings).bytes(), "file");
  EXPECT_EQ(model.normalise("a"), "\u2581x");
  EXPECT_FALSE(survives(with_unit(0, 0x80000000u, strings)));
  EXPECT_FALSE(survives(small_file().rules(leads, std::string("\x80\0", 2)).bytes()));
  leads[7] = 0x80000001u;  // into the middle of a character
  EXPECT_FALSE(survives(small_file().rules(leads, std::string("\xC3\xA9\0", 3)).bytes()));
  // Sizes that cannot be.
  for (const std::string& blob :
       {std::string("\1"), std::string("\4\0\0\0", 4), std::string("\5\0\0\0abcdefgh", 12),
        std::string("\xFF\xFF\xFF\xFFpppp"), std::string(40, '\0')})
    EXPECT_FALSE(survives(small_file().raw_rules(blob).bytes()));
}

TEST(SubwordFile, RulesThatMakeTextGrowWithoutMeasureStopAtTheLine) {
  std::vector<uint32_t> leads(256, 0);
  leads['a'] = 'a' | 1 << 8 | static_cast<uint32_t>('a' ^ 7) << 10;
  leads[7] = 0x80000000u;
  const Subwords model =
      Subwords::parse(small_file().rules(leads, std::string(100'000, 'x') + '\0').bytes(), "file");
  EXPECT_NE(testing::error_of([&] { model.encode(std::string(100'000, 'a')); }).find("grow"),
            std::string::npos);
}

TEST(SubwordFile, R48_MoreRulesThanTheLibraryCountsWithOnePrefix) {
  // "a", "aa", "aaa" and on to forty: a chain of nodes, each with a value.
  constexpr uint32_t kDepth = 40;
  std::vector<uint32_t> units(256 * (kDepth + 2), 0);
  uint32_t node = 0;
  for (uint32_t i = 1; i <= kDepth; ++i) {  // children of depth i stand in block i
    const uint32_t child = 256 * i + 'a';
    units[node] |= (node ^ (256 * i)) << 10;
    units[256 * i] = node == 0 ? 0 : 0x80000000u;  // the value of the node before: string 0
    units[child] = 'a' | (i < kDepth ? 1u << 8 : 0u);
    node = child;
  }
  const Subwords model =
      Subwords::parse(small_file().rules(units, std::string("y\0", 2)).bytes(), "file");
  EXPECT_EQ(model.normalise(std::string(39, 'a')), "\u2581y");
}

TEST(SubwordFile, AnyDamageIsOneErrorOrAModelThatWorks) {
  const std::string bytes =
      sample_model({.vocabulary = 120, .user_symbols = {"<sep>"}, .normalisation = "identity"}, 100)
          .bytes();
  int refused = 0;
  for (size_t cut = 0; cut < bytes.size(); cut += 7) refused += !survives(bytes.substr(0, cut));
  EXPECT_GT(refused, 10);
  Rng rng(5);
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = bytes;
    for (int64_t n = 1 + rng.below(4); n > 0; --n)
      damaged[static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())))] =
          static_cast<char>(rng.below(256));
    survives(damaged);
  }
}

TEST(SubwordFile, DamagedRulesAreOneErrorOrAModelThatWorks) {
  const std::string bytes = sample_model({.vocabulary = 120}, 100).bytes();
  const size_t rules = bytes.find("nmt_nfkc");
  ASSERT_NE(rules, std::string::npos);
  Rng rng(6);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = bytes;
    for (int n = 0; n < 20; ++n)
      damaged[rules + 20 + static_cast<size_t>(rng.below(200000))] =
          static_cast<char>(rng.below(256));
    survives(damaged);
  }
}

TEST(TrainSubwords, TheSameTextGivesTheSameModel) {
  EXPECT_EQ(sample_model({.vocabulary = 150}).bytes(), sample_model({.vocabulary = 150}).bytes());
}

TEST(TrainSubwords, SpecialPiecesComeFirst) {
  const Subwords model = sample_model({.vocabulary = 150, .user_symbols = {"<sep>", "a,\"b"}});
  const char* first[] = {"<pad>", "<s>", "</s>", "<unk>", "<sep>", "a,\"b"};
  for (int id = 0; id < 6; ++id) EXPECT_EQ(model.piece(id), first[id]);
  EXPECT_LE(model.size(), 150);
}

TEST(TrainSubwords, WhatCannotBeLearntIsAnError) {
  const auto complaint = [](const SubwordTraining& options, int64_t lines = 50) {
    return testing::error_of([&] { sample_model(options, lines); });
  };
  EXPECT_NE(complaint({.vocabulary = 0}).find("vocabulary"), std::string::npos);
  EXPECT_NE(complaint({.vocabulary = 10}).find("got 10;"), std::string::npos);
  EXPECT_NE(complaint({.character_coverage = 0.5}).find("coverage"), std::string::npos);
  EXPECT_NE(complaint({.normalisation = "nfd"}).find("nfd"), std::string::npos);
  EXPECT_NE(complaint({.user_symbols = {"x", "x"}}).find("twice"), std::string::npos);
  EXPECT_NE(complaint({.user_symbols = {"<s>"}}).find("special"), std::string::npos);
  EXPECT_NE(complaint({.user_symbols = {""}}).find("symbols"), std::string::npos);
  EXPECT_NE(complaint({}, 0).find("no line"), std::string::npos);
}

TEST(TrainSubwords, AwkwardLinesDoNoHarm) {
  for (const SubwordModel kind :
       {SubwordModel::unigram, SubwordModel::bpe, SubwordModel::words, SubwordModel::characters}) {
    Rng rng(9);
    int left = 600;
    std::string line;
    const Subwords model = train_subwords(
        [&]() -> std::optional<std::string_view> {
          if (left-- == 0) return std::nullopt;
          line = left % 2 == 0 ? random_text(rng) : sample_sentence(rng, 8);
          return line;
        },
        {.vocabulary = 900, .model = kind, .character_coverage = 0.99, .byte_fallback = true});
    EXPECT_GT(model.encode("the cat").size(), 0u);
  }
}

TEST(TrainSubwords, ALineOfAMegabyteDoesNoHarm) {
  std::string line;
  while (line.size() < 999'000) line += "the cat sat. ";
  int left = 20;
  const Subwords model = train_subwords(
      [&]() -> std::optional<std::string_view> {
        if (left-- == 0) return std::nullopt;
        return left == 10 ? std::string_view(line) : std::string_view("some dogs sleep");
      },
      {.vocabulary = 40, .model = SubwordModel::bpe});
  EXPECT_EQ(model.decode(model.encode("the dogs sat.")), "the dogs sat.");
}

TEST(TrainSubwords, WhatReadingThrowsComesOut) {
  int line = 0;
  const auto failing = [&]() -> std::optional<std::string_view> {
    if (++line == 20) throw Error("line 20 is broken", ErrorKind::data);
    return "some words on a line";
  };
  EXPECT_EQ(testing::error_of([&] { train_subwords(failing, {.vocabulary = 30}); }),
            "line 20 is broken");
}

TEST(TrainSubwords, LargerThanTheTextAllowsIsASmallerModel) {
  for (const SubwordModel kind :
       {SubwordModel::unigram, SubwordModel::bpe, SubwordModel::words, SubwordModel::characters})
    EXPECT_LT(sample_model({.vocabulary = 5000, .model = kind}, 20).size(), 1000);
}

}  // namespace
}  // namespace rapt::text
