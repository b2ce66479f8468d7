#include "rapt/nn/torch/names.h"

#include <optional>

#include "rapt/base/check.h"

namespace rapt::nn::torch {
namespace {

std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t dot = std::min(name.find('.', begin), name.size());
    words.push_back(name.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return words;
}

bool is_in_projection(const std::string& word) {
  return word == "query" || word == "key" || word == "value";
}

// The last two words of a parameter of an in-projection, as one; nothing for the later parts of a
// stacked parameter, which goes as a whole.
std::optional<std::string> in_projection(const NamedParameter& p, const std::string& part,
                                         const std::string& what) {
  if (p.count == p.parameter.shape()[0]) return part.substr(0, 1) + "_proj_" + what;
  if (p.begin > 0) return std::nullopt;
  return "in_proj_" + what;
}

// Words that stand for others; those of the feed-forward network vanish.
std::string official(const std::string& word, LayerKind kind) {
  if (word == "self_attention") return "self_attn";
  if (word == "cross_attention") return "multihead_attn";
  if (word == "output") return "out_proj";
  if (word == "self_attention_norm") return "norm1";
  if (word == "cross_attention_norm") return "norm2";
  if (word == "feed_forward_norm") return kind == LayerKind::encoder ? "norm2" : "norm3";
  return word == "feed_forward" ? "" : word;
}

std::optional<std::string> official_name(const NamedParameter& p, LayerKind kind) {
  std::vector<std::string> words = split(p.name);
  std::optional<std::string> last;
  if (words.size() >= 2 && is_in_projection(words[words.size() - 2])) {
    last = in_projection(p, words[words.size() - 2], words.back());
    if (!last) return std::nullopt;
    words.resize(words.size() - 2);
  }
  std::string name;
  for (const std::string& word : words) {
    const std::string other = official(word, kind);
    if (!other.empty()) name = join_name(name, other);
  }
  return last ? join_name(name, *last) : name;
}

}  // namespace

AttentionPart attention_part(const std::string& name) {
  const std::vector<std::string> words = split(name);
  if (words.size() < 2) return AttentionPart::none;
  const std::string& word = words[words.size() - 2];
  if (is_in_projection(word)) return AttentionPart::in;
  return word == "output" ? AttentionPart::out : AttentionPart::none;
}

void visit_by_official_names(const Module& module, LayerKind kind, const Visitor& visitor,
                             const std::string& prefix) {
  const auto translated = [&](const NamedParameter& p) {
    if (const auto name = official_name(p, kind)) {
      visitor({join_name(prefix, *name), p.parameter, 0, p.parameter.shape()[0]});
    }
  };
  module.visit(translated, "");
}

}  // namespace rapt::nn::torch
