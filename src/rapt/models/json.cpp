#include "rapt/models/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/base/nearest.h"

namespace rapt::models {

using nlohmann::json;

struct JsonObject::State {
  json value;
  std::string name;  // of the file, and of the keys down to this object
  ErrorKind kind;
};

namespace {

// A value as messages show it, cut after some forty bytes.
std::string shown(const json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

// Parses text that is within bounds. A key that stands twice in an object is an error: the parser
// alone would keep the last and drop the others in silence.
json parse_unique(std::string_view text, const std::string& name, ErrorKind kind) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const std::string key = value.get<std::string>();
      if (!keys.back().insert(key).second) {
        fail(kind, "{}: the key {} stands twice in one object", name, shown(value));
      }
    }
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::parse_error& error) {
    fail(kind, "{}: not JSON: wrong at byte {}", name, error.byte);
  } catch (const json::exception&) {
    fail(kind, "{}: not JSON: a number is out of range", name);
  }
}

std::string listed(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

}  // namespace

JsonObject::JsonObject(std::shared_ptr<const State> state) : state_(std::move(state)) {}

JsonObject JsonObject::read(const std::filesystem::path& path, const Limits& limits) {
  const std::string text =
      with_error_kind(ErrorKind::model, "", [&] { return read_file(path, limits.json_bytes); });
  return parse(text, path.string(), limits);
}

JsonObject JsonObject::parse(std::string_view text, const std::string& name, const Limits& limits,
                             ErrorKind kind) {
  check_json_bounds(text, {.depth = limits.json_depth}, name, kind);
  json value = parse_unique(text, name, kind);
  if (!value.is_object()) fail(kind, "{}: expected a JSON object, got {}", name, shown(value));
  return JsonObject(std::make_shared<const State>(State{std::move(value), name, kind}));
}

bool JsonObject::has(std::string_view key) const {
  const auto found = state_->value.find(key);
  return found != state_->value.end() && !found->is_null();
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : state_->value.items()) keys.push_back(key);
  return keys;
}

void JsonObject::refuse(std::string_view key, const std::string& expected) const {
  const auto found = state_->value.find(key);
  fail(state_->kind, "{}: {}: expected {}, got {}", state_->name, key, expected,
       found == state_->value.end() ? "nothing" : shown(*found));
}

int64_t JsonObject::integer(std::string_view key, int64_t low, int64_t high) const {
  const auto found = state_->value.find(key);
  if (found != state_->value.end() && found->is_number_integer()) {
    const bool fits =
        !found->is_number_unsigned() || std::in_range<int64_t>(found->get<uint64_t>());
    const int64_t value = fits ? found->get<int64_t>() : 0;
    if (fits && value >= low && value <= high) return value;
  }
  refuse(key, fmt::format("an integer from {} to {}", low, high));
}

int64_t JsonObject::integer_or(std::string_view key, int64_t fallback, int64_t low,
                               int64_t high) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double JsonObject::number(std::string_view key, double low, double high) const {
  const auto found = state_->value.find(key);
  if (found != state_->value.end() && found->is_number()) {
    const double value = found->get<double>();
    if (std::isfinite(value) && value >= low && value <= high) return value;
  }
  refuse(key, fmt::format("a number from {} to {}", low, high));
}

double JsonObject::number_or(std::string_view key, double fallback, double low, double high) const {
  return has(key) ? number(key, low, high) : fallback;
}

bool JsonObject::boolean(std::string_view key) const {
  const auto found = state_->value.find(key);
  if (found == state_->value.end() || !found->is_boolean()) refuse(key, "true or false");
  return found->get<bool>();
}

bool JsonObject::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

std::string JsonObject::text(std::string_view key) const {
  const auto found = state_->value.find(key);
  if (found == state_->value.end() || !found->is_string()) refuse(key, "a string");
  return found->get<std::string>();
}

std::string JsonObject::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

std::string JsonObject::choice(std::string_view key,
                               std::initializer_list<std::string_view> choices) const {
  const auto found = state_->value.find(key);
  if (found != state_->value.end() && found->is_string()) {
    auto value = found->get<std::string>();
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  }
  refuse(key, "one of " + listed(std::span(choices.begin(), choices.size())));
}

std::string JsonObject::choice_or(std::string_view key, std::string_view fallback,
                                  std::initializer_list<std::string_view> choices) const {
  return has(key) ? choice(key, choices) : std::string(fallback);
}

JsonObject JsonObject::object(std::string_view key) const {
  const auto found = state_->value.find(key);
  if (found == state_->value.end() || !found->is_object()) refuse(key, "an object");
  const std::string name = fmt::format("{}: {}", state_->name, key);
  return JsonObject(std::make_shared<const State>(State{*found, name, state_->kind}));
}

std::vector<int64_t> JsonObject::integers(std::string_view key, int64_t low, int64_t high) const {
  const auto found = state_->value.find(key);
  if (found == state_->value.end() || !found->is_array()) refuse(key, "an array of integers");
  std::vector<int64_t> values;
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string place = fmt::format("{}[{}]", key, i);
    const State item{json{{place, (*found)[i]}}, state_->name, state_->kind};
    values.push_back(JsonObject(std::make_shared<const State>(item)).integer(place, low, high));
  }
  return values;
}

std::vector<std::string> JsonObject::texts(std::string_view key) const {
  const auto found = state_->value.find(key);
  const bool fits =
      found != state_->value.end() && found->is_array() &&
      std::all_of(found->begin(), found->end(), [](const json& item) { return item.is_string(); });
  if (!fits) refuse(key, "an array of strings");
  return found->get<std::vector<std::string>>();
}

void JsonObject::allow_only(std::span<const std::string_view> known) const {
  for (const auto& [key, value] : state_->value.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string close = nearest(key, known);
    fail(state_->kind, "{}: unknown key {}{}", state_->name, shown(json(key)),
         close.empty() ? "; known are " + listed(known) : fmt::format("; did you mean {}?", close));
  }
}

}  // namespace rapt::models
