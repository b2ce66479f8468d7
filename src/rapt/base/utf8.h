// UTF-8, strictly (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. NUL is a
// character like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rapt {

inline constexpr std::string_view kReplacementCharacter = "\uFFFD";

// Where the first sequence that is not valid begins, in bytes; nothing if `text` is valid.
std::optional<size_t> first_invalid_utf8(std::string_view text);

// The code points of `text`. Throws Error (kind data) with the byte offset where it is not valid.
std::u32string decode_utf8(std::string_view text);

// Appends `code_point`. Throws Error (kind data) for a surrogate and above U+10FFFF.
void append_utf8(std::string& text, char32_t code_point);
std::string encode_utf8(std::u32string_view code_points);

// `text` with U+FFFD for each longest stretch that begins a character and does not end it, and for
// each other wrong byte (the practice that Unicode recommends, section 3.9); adds their number to
// `replaced`.
std::string replace_invalid_utf8(std::string_view text, int64_t& replaced);

}  // namespace rapt
