// Settings: what can be said of a run, and what was said, with whoever said it.
//
// They are merged in layers, of which the later win: built in, preset, the run that goes on, files,
// environment, flags.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::config {

// What can be said.
struct Key {
  std::string name;      // that of the flag: "label-smoothing"
  std::string expected;  // what a value is, for messages: "a number in [0, 1)"
  std::string help;      // a sentence
  std::string built_in;  // the value where nobody says one; empty: none
  bool is_path = false;
  bool is_for_one_call = false;                   // a flag and nothing else, such as --out
  std::function<bool(const std::string&)> takes;  // whether the text can be a value
};

enum class Origin { built_in, preset, run, file, environment, flag };

// What was said.
struct Setting {
  std::string name, value;
  Origin origin = Origin::built_in;
  std::string where;  // "train.yaml:3", "RAPT_DROPOUT", "--dropout"
};
using Settings = std::map<std::string, Setting, std::less<>>;

// The keys of a verb, in the order of its help.
class Schema {
 public:
  explicit Schema(std::vector<Key> keys) : keys_(std::move(keys)) {}

  const std::vector<Key>& keys() const { return keys_; }
  const Key* find(std::string_view name) const;  // null: there is none

  // Throws Error for a name that no key has, naming the nearest; for a key that is a flag and
  // nothing else, and for an empty or another value than the key takes.
  void check(std::string_view name, const std::string& value) const;
  // The same where the value is no text: `got` says what it is instead, "a list".
  const Key& check_name(std::string_view name) const;
  [[noreturn]] void refuse(const Key& key, std::string_view got) const;

  // What holds where nobody says anything.
  Settings built_in() const;

 private:
  std::vector<Key> keys_;
};

// Lays what was said later over `settings`.
void lay_over(Settings& settings, const std::vector<Setting>& later);

// The value of a key, empty where it has none.
std::string value_of(const Settings& settings, std::string_view name);

// The settings as a YAML file that says the same again: a line a key in the schema's order, with
// its origin as a comment. Keys without a value are comments. Paths become absolute.
std::string to_yaml(const Schema& schema, const Settings& settings);

}  // namespace rapt::config
