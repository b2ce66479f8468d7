#include "rapt/text/tokenizer.h"

namespace rapt::text {

std::vector<int32_t> Tokenizer::encode(std::string_view line, std::string_view where) const {
  return subwords() ? subwords()->encode(line) : vocabulary()->encode(line, where);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  return subwords() ? subwords()->decode(ids) : vocabulary()->decode(ids);
}

int64_t Tokenizer::size() const { return subwords() ? subwords()->size() : vocabulary()->size(); }

const SpecialIds& Tokenizer::special() const {
  return subwords() ? subwords()->special() : vocabulary()->special();
}

const std::string& Tokenizer::word(int64_t id) const {
  return subwords() ? subwords()->piece(id) : vocabulary()->word(id);
}

std::string_view Tokenizer::unit() const { return subwords() ? "pieces" : "words"; }

}  // namespace rapt::text
