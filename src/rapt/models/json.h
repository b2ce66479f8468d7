// JSON from files that nobody vouches for: bounded before it is parsed, then read by typed getters
// that name the key they complain about.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/base/error.h"
#include "rapt/base/limits.h"

namespace rapt::models {

// What a JSON text may hold. Text within the bounds can be parsed in memory of a few times its
// size.
struct JsonBounds {
  int depth = 64;                  // nested brackets
  int64_t values = 1'000'000;      // of all arrays and objects together
  int64_t string_bytes = 4 << 20;  // of one string, as written
};

// Throws Error of `kind` if `text` passes the bounds or has a string without an end. One pass, no
// allocation, no recursion; whether the text is JSON is for the parser to say.
void check_json_bounds(std::string_view text, const JsonBounds& bounds, const std::string& name,
                       ErrorKind kind);

// An object of a JSON file. Getters throw Error of the kind that the object was opened with, naming
// the file, the key, what was expected and what stands there.
class JsonObject {
 public:
  // Reads a file whose outermost value is an object. Throws Error (model): missing, larger than
  // Limits::json_bytes, out of bounds, not JSON, a key twice in one object.
  static JsonObject read(const std::filesystem::path& path, const Limits& limits = {});

  // The same for a text; `name` stands in messages.
  static JsonObject parse(std::string_view text, const std::string& name, const Limits& limits = {},
                          ErrorKind kind = ErrorKind::model);

  bool has(std::string_view key) const;  // a key whose value is null counts as absent
  std::vector<std::string> keys() const;

  // An integer in [low, high]; 2.0 and "2" are none.
  int64_t integer(std::string_view key, int64_t low, int64_t high) const;
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high) const;

  // A finite number in [low, high].
  double number(std::string_view key, double low, double high) const;
  double number_or(std::string_view key, double fallback, double low, double high) const;

  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool fallback) const;

  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;

  // One of `choices`; a message lists them.
  std::string choice(std::string_view key, std::initializer_list<std::string_view> choices) const;
  std::string choice_or(std::string_view key, std::string_view fallback,
                        std::initializer_list<std::string_view> choices) const;

  JsonObject object(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key, int64_t low, int64_t high) const;
  std::vector<std::string> texts(std::string_view key) const;

  // Throws Error for a key that is not among `known`; the message names the nearest one.
  void allow_only(std::span<const std::string_view> known) const;
  void allow_only(std::initializer_list<std::string_view> known) const {
    allow_only(std::span(known.begin(), known.size()));
  }

  // Throws Error about a key's value: "config.json: d_model: expected ..., got 3".
  [[noreturn]] void refuse(std::string_view key, const std::string& expected) const;

 private:
  struct State;
  explicit JsonObject(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace rapt::models
