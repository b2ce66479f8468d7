#include "rapt/text/normaliser.h"

#include <algorithm>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/text/protobuf.h"

namespace rapt::text {
namespace {

// Text grows by no more than this: the longest that Unicode's own rules make of 3 bytes has 33.
constexpr size_t kGrowth = 64, kLeastBound = 4096;

// A unit of a double array (Darts-clone's layout). A node holds its label in the low byte and the
// distance to its children, by exclusive or; a leaf has the top bit set and holds a value.
bool is_leaf(uint32_t unit) { return unit >> 31 != 0; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

uint32_t read_uint32(std::string_view bytes, size_t at) {
  return static_cast<uint32_t>(little_endian(bytes.substr(at, 4)));
}

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Once these hold, no walk leaves the array or the strings: from every node, whatever byte comes
// next leads inside (a byte changes the low eight bits of an index alone), and every value is the
// place of a string.
void check_trie(const std::vector<uint32_t>& units, const std::string& strings,
                const std::string& name) {
  if (is_leaf(units[0]))
    fail(ErrorKind::data, "{}: the normaliser's trie starts with a leaf", name);
  for (size_t i = 0; i < units.size(); ++i) {
    if (is_leaf(units[i])) continue;
    const size_t base = i ^ offset_of(units[i]);
    if ((base | 0xFF) >= units.size())
      fail(ErrorKind::data, "{}: unit {} of the normaliser's trie leads to {}, beyond its {} units",
           name, i, base | 0xFF, units.size());
    if (!has_value(units[i])) continue;
    const uint32_t value = value_of(units[base]);
    if (value >= strings.size() || is_inside_character(strings[value]))
      fail(
          ErrorKind::data,
          "{}: unit {} of the normaliser's trie leads to byte {} of the strings, which have {}, or "
          "into the middle of a character",
          name, i, value, strings.size());
  }
}

}  // namespace

Normaliser::Normaliser(const NormaliserSettings& settings, bool white_space_as_suffix,
                       ByteTrie keep, const std::string& name)
    : add_dummy_prefix_(settings.add_dummy_prefix),
      remove_extra_white_space_(settings.remove_extra_white_space),
      as_suffix_(white_space_as_suffix),
      space_(settings.escape_white_space ? kSpaceMark : std::string_view(" ")),
      keep_(std::move(keep)) {
  const std::string& rules = settings.charsmap;
  if (rules.empty()) return;
  const uint32_t trie = rules.size() < 4 ? 0 : read_uint32(rules, 0);
  if (trie == 0 || trie % 4 != 0 || trie > rules.size() - 4 || trie + 4 == rules.size())
    fail(ErrorKind::data,
         "{}: the normaliser's rules have {} bytes and a trie of {}; expected 4 bytes, a trie of "
         "whole units, then strings",
         name, rules.size(), trie);
  for (size_t at = 4; at < 4 + static_cast<size_t>(trie); at += 4)
    units_.push_back(read_uint32(rules, at));
  strings_ = rules.substr(4 + static_cast<size_t>(trie));
  if (const auto wrong = first_invalid_utf8(strings_))
    fail(ErrorKind::data, "{}: the normaliser's strings are invalid UTF-8 at byte {}", name,
         *wrong);
  check_trie(units_, strings_, name);
}

Normalised Normaliser::normalise(std::string_view input) const {
  Normalised result;
  const size_t largest = kGrowth * input.size() + kLeastBound;
  size_t consumed = 0;
  const auto advance = [&](size_t length) {
    consumed += length;
    input.remove_prefix(length);
  };
  const auto append = [&](std::string_view text) {
    result.text += text;
    result.origin.insert(result.origin.end(), text.size(), consumed);
  };
  if (remove_extra_white_space_) {
    while (!input.empty()) {
      const Step step = first(input);
      if (step.text != " ") break;
      advance(step.length);
    }
  }
  if (input.empty()) {
    result.origin.push_back(consumed);
    return result;
  }
  if (add_dummy_prefix_ && !as_suffix_) append(space_);
  bool after_space = remove_extra_white_space_;
  while (!input.empty()) {
    const Step step = first(input);
    std::string_view text = step.text;
    while (after_space && text.starts_with(' ')) text.remove_prefix(1);
    for (const char& byte : text) append(byte == ' ' ? space_ : std::string_view(&byte, 1));
    if (result.text.size() > largest)
      fail(ErrorKind::data,
           "subwords: the model's rules make the line of {} bytes grow beyond {}: they cannot be "
           "meant",
           consumed + input.size(), largest);
    if (!text.empty()) after_space = remove_extra_white_space_ && text.ends_with(' ');
    advance(step.length);
  }
  if (remove_extra_white_space_) {
    while (result.text.ends_with(space_)) {
      const size_t length = result.text.size() - space_.size();
      consumed = result.origin[length];
      result.text.resize(length);
      result.origin.resize(length);
    }
  }
  if (add_dummy_prefix_ && as_suffix_) append(space_);
  result.origin.push_back(consumed);
  return result;
}

Normaliser::Step Normaliser::first(std::string_view input) const {
  if (const size_t kept = keep_.longest_prefix(input); kept > 0)
    return {input.substr(0, kept), kept};
  if (const Step step = by_rules(input); step.length > 0) return step;
  size_t length = 0;
  if (!starts_valid(input, length)) return {kReplacementCharacter, 1};
  return {input.substr(0, length), length};
}

// The longest rule; length 0 where none applies.
Normaliser::Step Normaliser::by_rules(std::string_view input) const {
  Step longest{{}, 0};
  if (units_.empty()) return longest;
  uint32_t node = offset_of(units_[0]);
  for (size_t i = 0; i < input.size(); ++i) {
    const auto byte = static_cast<unsigned char>(input[i]);
    node ^= byte;
    const uint32_t unit = units_[node];
    if (label_of(unit) != byte) break;
    node ^= offset_of(unit);
    if (!has_value(unit)) continue;
    const std::string_view rest = std::string_view(strings_).substr(value_of(units_[node]));
    longest = {rest.substr(0, rest.find('\0')), i + 1};
  }
  return longest;
}

size_t character_length(std::string_view text) {
  constexpr size_t kLengths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return std::min(kLengths[static_cast<unsigned char>(text[0]) >> 4], text.size());
}

bool starts_valid(std::string_view text, size_t& length) {
  length = character_length(text);
  if (!first_invalid_utf8(text.substr(0, length))) return true;
  length = 1;
  return false;
}

}  // namespace rapt::text
