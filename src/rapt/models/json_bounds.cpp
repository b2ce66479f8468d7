#include "rapt/base/check.h"
#include "rapt/models/json.h"

namespace rapt::models {
namespace {

// The place behind the string that starts after the quote before `begin`.
size_t end_of_string(std::string_view text, size_t begin, const JsonBounds& bounds,
                     const std::string& name, ErrorKind kind) {
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
    if (static_cast<int64_t>(i - begin) >= bounds.string_bytes) {
      fail(kind, "{}: not accepted as JSON: the string at byte {} is longer than {} bytes", name,
           begin, bounds.string_bytes);
    }
  }
  fail(kind, "{}: not JSON: the string at byte {} has no end", name, begin);
}

}  // namespace

void check_json_bounds(std::string_view text, const JsonBounds& bounds, const std::string& name,
                       ErrorKind kind) {
  int64_t values = 0;
  int depth = 0;
  size_t word = 0;  // where the present number or word begins
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      word = i = end_of_string(text, i + 1, bounds, name, kind);
      continue;
    }
    ++i;
    const bool separates = std::string_view("[]{},: \t\r\n").find(c) != std::string_view::npos;
    if (separates) word = i;
    if (i - word > 64) {
      fail(kind, "{}: not JSON: the number or word at byte {} has no end", name, word + 1);
    }
    if (c == '[' || c == '{') {
      if (++depth > bounds.depth) {
        fail(kind, "{}: not accepted as JSON: brackets are nested more than {} deep at byte {}",
             name, bounds.depth, i);
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (c == ',' || c == '[' || c == '{') ++values;
    if (values > bounds.values) {
      fail(kind, "{}: not accepted as JSON: more than {} values", name, bounds.values);
    }
  }
}

}  // namespace rapt::models
