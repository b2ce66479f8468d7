#include "rapt/decode/alignment.h"

#include <fmt/format.h>

#include <algorithm>

#include "rapt/base/check.h"
#include "rapt/decode/sentences.h"
#include "rapt/ops/attention.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::decode {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t'; }

// The number of words that begin in `text`.
int64_t count_words(std::string_view text) {
  int64_t words = 0;
  for (size_t i = 0; i < text.size(); ++i)
    words += !is_space(text[i]) && (i == 0 || is_space(text[i - 1])) ? 1 : 0;
  return words;
}

// The number of the word that the last character of `text` stands in, or that comes after it.
int64_t word_at_end(std::string_view text) {
  const bool between = text.empty() || is_space(text.back());
  return count_words(text) - (between ? 0 : 1);
}

// The word that each token of a line lies in.
std::vector<int64_t> words_of_line(const text::Tokenizer& tokenizer, std::string_view line,
                                   size_t tokens) {
  std::vector<int64_t> words;
  words.reserve(tokens);
  if (const text::Subwords* subwords = tokenizer.subwords()) {
    for (const text::Subword& piece : subwords->cut(line))
      words.push_back(word_at_end(line.substr(0, piece.end)));
  } else {
    for (size_t i = 0; i < tokens; ++i) words.push_back(static_cast<int64_t>(i));
  }
  RAPT_ASSERT(words.size() == tokens);
  return words;
}

// The word of the text that each token becomes a part of; -1 for tokens that no text shows.
std::vector<int64_t> words_of_text(const text::Tokenizer& tokenizer,
                                   const std::vector<int32_t>& ids) {
  std::vector<int64_t> words;
  std::string before;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string text = tokenizer.decode(std::span(ids).first(i + 1));
    words.push_back(text == before ? -1 : word_at_end(text));
    before = std::move(text);
  }
  return words;
}

Rows one_sentence(const std::vector<int32_t>& ids) {
  return Rows::packed({static_cast<int64_t>(ids.size())});
}

}  // namespace

int64_t alignment_layer(const models::EncoderDecoder& model) {
  const int64_t layers = model.config().num_decoder_layers;
  if (layers == 0) fail(ErrorKind::usage, "alignment: the model has no decoder layers");
  return std::max<int64_t>(layers - 2, 0);
}

Tensor soft_alignment(const models::EncoderDecoder& model, const std::vector<int32_t>& source,
                      const std::vector<int32_t>& target) {
  std::vector<int32_t> read = {model.config().start_id};  // the row of a token chooses the next
  read.insert(read.end(), target.begin(), target.end());
  read.resize(target.size());
  AttentionCapture capture;
  capture.wants = cross_attention_of(alignment_layer(model));
  const nn::Memory memory =
      model.encode(as_tensor(source), one_sentence(source), Pass::inference());
  model.decode(as_tensor(read), one_sentence(read), memory, Pass({.capture = &capture}));
  return mean_heads(capture.entries.at(0).weights)
      .reshape({static_cast<int64_t>(target.size()), static_cast<int64_t>(source.size())});
}

std::vector<Link> align_words(const Translator& translator, std::string_view line,
                              const std::vector<int32_t>& source,
                              const std::vector<int32_t>& target) {
  if (source.empty() || target.empty()) return {};
  const Tensor weights = soft_alignment(*translator.model, source, target);  // (T, S)
  const std::vector<int64_t> from = words_of_line(translator.source, line, source.size());
  const std::vector<int64_t> to = words_of_text(translator.target, target);
  std::vector<Link> links;
  dispatch_float(weights.dtype(), "alignment", [&](auto tag) {
    using T = decltype(tag);
    for (size_t t = 0; t < target.size(); ++t) {
      if (to[t] < 0) continue;
      const T* row = weights.data<T>() + t * source.size();
      const auto most = std::max_element(row, row + source.size()) - row;
      links.push_back({from[static_cast<size_t>(most)], to[t]});
    }
  });
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

std::string pharaoh(const std::vector<Link>& links) {
  std::string text;
  for (const Link& link : links)
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", link.source, link.target);
  return text;
}

}  // namespace rapt::decode
