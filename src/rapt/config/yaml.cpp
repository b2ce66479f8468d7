#include "rapt/config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/base/utf8.h"

namespace rapt::config {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 64;

// Stands as a comment behind the text. yaml-cpp lets a quote end with the file: then this stands in
// the quoted text. A control character is in it, so that no file can hold it.
constexpr std::string_view kEnd = "\x01end";

// Turns the parser's events into settings: names and values in turn, at a depth of 1.
class Reader : public YAML::EventHandler {
 public:
  Reader(const fs::path& file, const Schema& schema, std::vector<Error>& problems)
      : file_(file), schema_(schema), problems_(problems) {}

  std::vector<Setting> settings;

  std::string where(int line) const { return fmt::format("{}:{}", file_.string(), line); }
  [[noreturn]] void refuse(int line, std::string_view what) const {
    fail(ErrorKind::config, "{}: {}", where(line), what);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (std::exchange(has_begun_, true))
      refuse(line_of(mark), "expected one document, got another");
  }
  void OnDocumentEnd() override {}

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { no_anchors(mark); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { no_anchors(mark); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { take(mark, "?", "nothing", {}); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    take(mark, tag, "text", value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, "a list");
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, "a mapping");
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapEnd() override { --depth_; }

 private:
  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

  [[noreturn]] void no_anchors(const YAML::Mark& mark) const {
    refuse(line_of(mark), "anchors and aliases (& and *) are not taken; say the value itself");
  }

  void open(const YAML::Mark& mark, const std::string& tag, const char* what) {
    take(mark, tag, what, {});
    if (++depth_ > kDeepest) refuse(line_of(mark), "nested too deep");
  }

  // What begins at `mark`: `what` in words, with its text where it is one.
  void take(const YAML::Mark& mark, const std::string& tag, std::string_view what,
            const std::optional<std::string>& text) {
    const int line = line_of(mark);
    if (tag.size() > 1) refuse(line, "tags (such as !!str) are not taken");
    if (text && text->find(kEnd) != std::string::npos) refuse(line, "a quote that is never closed");
    if (depth_ > 1) return;  // inside of a value that was refused as a whole
    if (depth_ == 0) {
      if (what != "a mapping")
        refuse(line,
               fmt::format("expected a configuration, lines of \"key: value\", got {}", what));
    } else if (!std::exchange(is_value_, !is_value_)) {
      if (!text) refuse(line, fmt::format("expected a key, got {}", what));
      name_ = *text;
      line_ = line;
    } else {
      take_value(what, text);
    }
  }

  void take_value(std::string_view what, const std::optional<std::string>& text) {
    try {
      const auto [first, is_new] = lines_.emplace(name_, line_);
      const Key& key = schema_.check_name(name_);
      if (!is_new)
        fail(ErrorKind::failure, "{}: said twice, first in line {}", name_, first->second);
      if (!text) schema_.refuse(key, what);
      schema_.check(name_, *text);
      const fs::path path = file_.parent_path() / *text;
      settings.push_back({name_, key.is_path ? path.lexically_normal().string() : *text,
                          Origin::file, where(line_)});
    } catch (const Error& error) {
      problems_.emplace_back(where(line_) + ": " + error.what(), ErrorKind::config);
    }
  }

  const fs::path& file_;
  const Schema& schema_;
  std::vector<Error>& problems_;
  int depth_ = 0;
  bool has_begun_ = false, is_value_ = false;
  std::string name_;  // of the value that comes next
  int line_ = 0;      // its
  std::map<std::string, int> lines_;
};

// What yaml-cpp would take or change unasked: other encodings and characters that cannot be seen.
void check_characters(const std::string& text, const Reader& reader) {
  const auto line_at = [&](size_t offset) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(offset);
    return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
  };
  if (const auto bad = first_invalid_utf8(text)) reader.refuse(line_at(*bad), "not valid UTF-8");
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') ||
           c == 0x7f;
  };
  const auto bad = std::find_if(text.begin(), text.end(), is_control);
  if (bad != text.end())
    reader.refuse(line_at(static_cast<size_t>(bad - text.begin())),
                  fmt::format("character {:#04x} is no text", static_cast<unsigned char>(*bad)));
}

bool is_null_word(std::string_view text) {
  return text == "null" || text == "Null" || text == "NULL";
}

bool is_plain(std::string_view text) {
  const auto is_harmless = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-' || c == '+';
  };
  return !text.empty() && text.front() != '-' && !is_null_word(text) &&
         std::all_of(text.begin(), text.end(), is_harmless);
}

}  // namespace

std::vector<Setting> read_yaml(const fs::path& file, const Schema& schema,
                               std::vector<Error>& problems) {
  const std::string text =
      with_error_kind(ErrorKind::config, "", [&] { return read_file(file, kMostYamlBytes); });
  Reader reader(file, schema, problems);
  check_characters(text, reader);
  std::istringstream stream(text + "\n#" + std::string(kEnd) + "\n");
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(reader)) {
    }
  } catch (const YAML::Exception& error) {
    reader.refuse(error.mark.line + 1, "this is no YAML: " + error.msg);
  }
  return std::move(reader.settings);
}

std::string yaml_scalar(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace rapt::config
