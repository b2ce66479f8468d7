#include "rapt/base/utf8.h"

#include <cstring>

#include "rapt/base/check.h"

namespace rapt {
namespace {

// What stands at some place: a character, or the beginning of one that is not completed.
struct Sequence {
  size_t bytes;
  bool valid;
  char32_t code_point;
};

// What a first byte asks for: how many bytes follow, and between which bounds the first of them
// lies; the bounds exclude overlong forms, surrogates and what is above U+10FFFF.
struct Lead {
  size_t following;
  unsigned char low, high;
};

Lead lead_of(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  return {0, 0, 0};
}

Sequence sequence_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  if (byte(at) < 0x80) return {1, true, byte(at)};
  Lead lead = lead_of(byte(at));
  if (lead.following == 0) return {1, false, 0};
  char32_t code_point = byte(at) & (0x3Fu >> lead.following);
  for (size_t i = 1; i <= lead.following; ++i) {
    if (at + i >= text.size()) return {i, false, 0};
    const unsigned char next = byte(at + i);
    if (next < lead.low || next > lead.high) return {i, false, 0};
    lead.low = 0x80, lead.high = 0xBF;
    code_point = code_point << 6 | (next & 0x3Fu);
  }
  return {lead.following + 1, true, code_point};
}

// The end of the ASCII characters that begin at `at`, looked at eight at a time.
size_t end_of_ascii(std::string_view text, size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    if ((eight & 0x8080808080808080u) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t at = end_of_ascii(text, 0); at < text.size(); at = end_of_ascii(text, at)) {
    const Sequence sequence = sequence_at(text, at);
    if (!sequence.valid) return at;
    at += sequence.bytes;
  }
  return std::nullopt;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Sequence sequence = sequence_at(text, at);
    if (!sequence.valid) {
      fail(ErrorKind::data, "UTF-8: byte {} (0x{:02X}) begins no valid character", at,
           static_cast<unsigned char>(text[at]));
    }
    result += sequence.code_point;
    at += sequence.bytes;
  }
  return result;
}

void append_utf8(std::string& text, char32_t code_point) {
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (surrogate || code_point > 0x10FFFF) {
    fail(ErrorKind::data, "UTF-8: U+{:04X} is not a character", static_cast<uint32_t>(code_point));
  }
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

std::string encode_utf8(std::u32string_view code_points) {
  std::string text;
  for (const char32_t code_point : code_points) append_utf8(text, code_point);
  return text;
}

std::string replace_invalid_utf8(std::string_view text, int64_t& replaced) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Sequence sequence = sequence_at(text, at);
    if (sequence.valid) {
      result += text.substr(at, sequence.bytes);
    } else {
      result += kReplacementCharacter;
      ++replaced;
    }
    at += sequence.bytes;
  }
  return result;
}

}  // namespace rapt
