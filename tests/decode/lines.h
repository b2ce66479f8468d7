// A small translator of words, and what it makes of lines.
#pragma once

#include <sstream>

#include "rapt/decode/translate.h"
#include "tests/testing/translators.h"

namespace rapt::testing {

using decode::Translation;
using decode::Translator;

inline Translator make_translator(uint64_t seed) {
  Translator t;
  models::EncoderDecoderConfig config = small_config("rapt");
  config.unk_id = 3;
  t.model = std::make_unique<models::EncoderDecoder>(make_model(config, DType::f32, seed));
  t.source = text::Vocabulary({"<pad>", "<s>", "</s>", "<unk>", "a", "b", "c", "d", "e"},
                              {.pad = 0, .unk = 3});
  t.target = text::Vocabulary({"<pad>", "<s>", "</s>", "<unk>", "x", "y", "z"},
                              {.pad = 0, .start = 1, .end = 2, .unk = 3});
  return t;
}

inline std::vector<Translation> translations(const Translator& t, const std::string& text,
                                             const decode::TranslateOptions& options = {},
                                             const text::LineOptions& lines = {}) {
  std::istringstream input(text);
  text::LineReader reader(input, "in", lines);
  std::vector<Translation> all;
  translate_lines(t, reader, options, [&](const Translation& line) { all.push_back(line); });
  return all;
}

}  // namespace rapt::testing
