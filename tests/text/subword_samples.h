// Texts for the tests of subwords: sentences of several scripts, awkward ones, and random bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/base/utf8.h"
#include "rapt/text/train_subwords.h"

namespace rapt::text {

inline const std::vector<std::string>& awkward_texts() {
  using namespace std::string_literals;
  static const std::vector<std::string> texts = {
      "",
      " ",
      "   ",
      "\t",
      "\u3000",
      "a",
      " a ",
      "  two   spaces  here  ",
      "Hello, world! It costs 1,234.50 dollars.",
      "a\u00A0no-break\u2003em space",
      "\u2581already \u2581marked\u2581",
      "\uFF21\uFF22\uFF23\uFF11\uFF12 full width \u2460\u2461 \u33A1 \uFB01ne",
      "e\u0301 combining, \u00E9 composed, A\u030A \u212B",
      "\u0130stanbul STRASSE \u00DF \u1E9E",
      "\u4ECA\u5929\u5929\u6C14\u5F88\u597D\u3002\u6211\u4EEC\u53BB\u516C\u56ED\u5427\uFF01",
      "\u304B\u3099\u3068\u30AB\u3099 \uFF76\uFF9E \u30AC",
      "\uD55C\uAD6D\uC5B4 \u1112\u1161\u11AB",
      "\u0645\u0631\u062D\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \uFEFB",
      "\u0939\u093F\u0928\u094D\u0926\u0940 \u0E44\u0E17\u0E22",
      "\U0001F600\U0001F469\u200D\U0001F467 \u2764\uFE0F \U0001F1EB\U0001F1F7 bar   ",
      "\nfoo \U0001F917 bar   ",
      "zero\u200Bwidth\u200Dand\uFEFFmark\u00AD",
      "control \x01\x02\x1F\x7F\u0085 end",
      "nul \0 in the middle"s,
      "\0"s,
      "<s> </s> <pad> <unk> <0x41> <0xF0>",
      "<sep>text<sep><sep> <sep",
      "[X] is kept[X]but [ X ] not",
      "\xFF\xFE bytes",
      "cut \xE2\x82",
      "\xC0\xAF overlong \xE0\x80\xAF \xF0\x80\x80\xAF",
      "\xED\xA0\x80 surrogate \xF4\x90\x80\x80 beyond \xF8\x88\x80\x80\x80",
      "\x80\x80 lone \xC3",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "the the the thethethe t h e",
  };
  return texts;
}

inline const std::vector<std::string>& sample_words() {
  static const std::vector<std::string> words = {"the",
                                                 "cat",
                                                 "sat",
                                                 "on",
                                                 "a",
                                                 "mat",
                                                 "running",
                                                 "runner",
                                                 "walks",
                                                 "walking",
                                                 "sleeping",
                                                 "dogs",
                                                 "dog's",
                                                 "quickly",
                                                 "brown",
                                                 "house",
                                                 "der",
                                                 "Hund",
                                                 "l\u00E4uft",
                                                 "\u00FCber",
                                                 "die",
                                                 "Wiese",
                                                 "sch\u00F6n",
                                                 "gro\u00DFe",
                                                 "le",
                                                 "chien",
                                                 "\u00E9t\u00E9",
                                                 "d\u00E9j\u00E0",
                                                 "o\u00F9",
                                                 "Gar\u00E7on",
                                                 "12",
                                                 "1,000",
                                                 "3.14",
                                                 "2024",
                                                 "!",
                                                 "?",
                                                 ",",
                                                 ".",
                                                 "(",
                                                 ")",
                                                 "\u6211\u4EEC",
                                                 "\u4ECA\u5929",
                                                 "\u559D\u8336",
                                                 "\u732B\u304C",
                                                 "\u5BDD\u3066\u3044\u308B",
                                                 "\u043F\u0440\u0438\u0432\u0435\u0442",
                                                 "\u043C\u0438\u0440",
                                                 "\u03BA\u03B1\u03BB\u03B7\u03BC\u03AD\u03C1\u03B1",
                                                 "\uD55C\uAD6D\uC5B4",
                                                 "\u0645\u0631\u062D\u0628\u0627",
                                                 "\U0001F600",
                                                 "<sep>",
                                                 "[X]"};
  return words;
}

// A sentence of `words` words, some of them joined.
inline std::string sample_sentence(Rng& rng, int64_t words) {
  const auto& all = sample_words();
  std::string sentence;
  for (int64_t w = 0; w < words; ++w) {
    if (w > 0 && rng.below(8) > 0) sentence += ' ';
    sentence += all[static_cast<size_t>(rng.below(static_cast<int64_t>(all.size())))];
  }
  return sentence;
}

// A text of any kind: a sentence, random characters of all planes, random bytes, or one of the
// awkward texts after another.
inline std::string random_text(Rng& rng) {
  std::string text;
  switch (rng.below(4)) {
    case 0:
      return sample_sentence(rng, rng.below(12));
    case 1:
      for (int64_t i = rng.below(20); i > 0; --i) {
        constexpr char32_t kPlanes[] = {0x80, 0x100, 0x800, 0x3000, 0xD800, 0x110000};
        char32_t c = static_cast<char32_t>(rng.below(kPlanes[rng.below(6)]));
        if (c >= 0xD800 && c < 0xE000) c = U' ';
        append_utf8(text, c);
      }
      return text;
    case 2:
      for (int64_t i = rng.below(16); i > 0; --i) text += static_cast<char>(rng.below(256));
      return text;
    default:
      for (int i = 0; i < 2; ++i)
        text += awkward_texts()[static_cast<size_t>(
            rng.below(static_cast<int64_t>(awkward_texts().size())))];
      return text;
  }
}

// A model learnt from sample sentences.
inline Subwords sample_model(const SubwordTraining& options, int64_t lines = 400) {
  Rng rng(7);
  std::string line;
  int64_t left = lines;
  return train_subwords(
      [&]() -> std::optional<std::string_view> {
        if (left-- == 0) return std::nullopt;
        line = sample_sentence(rng, 8);
        return line;
      },
      options);
}

}  // namespace rapt::text
