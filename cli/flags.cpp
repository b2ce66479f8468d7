#include "cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>

#include "rapt/base/check.h"
#include "rapt/base/nearest.h"

namespace rapt::cli {
namespace {

template <class T>
bool parse(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && stop == end;
}

std::string expected(const std::string& what, const std::string& got) {
  return fmt::format("expected {}, got \"{}\"", what, got);
}

// Without a name, so that help shows the flag's type alone.
CLI::Validator check(std::function<std::string(std::string&)> test) {
  return CLI::Validator(std::move(test), "");
}

CLI::Validator number(std::string what, std::function<bool(double)> fits) {
  return check([what = std::move(what), fits = std::move(fits)](std::string& text) {
    double value = 0;
    return parse(text, value) && fits(value) ? std::string() : expected(what, text);
  });
}

// "a, b or c" where `last` is "or".
std::string listed(std::span<const std::string> values, std::string_view last) {
  if (values.size() == 1) return values.front();
  return fmt::format("{} {} {}", fmt::join(values.first(values.size() - 1), ", "), last,
                     values.back());
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Flags and verbs of `app` and of what it falls through to.
std::vector<std::string> known_names(const CLI::App* app) {
  std::vector<std::string> all;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
    }
    for (const CLI::App* verb : verbs_of(*app)) all.push_back(verb->get_name());
  }
  return all;
}

// What a verb needs and was not given: "--out DIR", or "DIR" without a flag; "" if it has all.
std::string missing(const CLI::App& verb) {
  std::vector<std::string> all;
  std::string description;
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const bool typed = option->get_type_name() != "TEXT";  // the parser's word for any text
    const std::string type = typed ? option->get_type_name() : option->get_single_name();
    all.push_back(option->get_positional() ? type : fmt::format("{} {}", option->get_name(), type));
    description = option->get_description();
  }
  if (all.empty()) return "";
  if (all.size() > 1 || description.empty()) return listed(all, "and");
  return fmt::format("{} ({:c}{})", all.front(), std::tolower(description.front()),
                     description.substr(1));
}

std::string unknown(const CLI::App& verb, const std::string& argument) {
  const bool is_flag = argument.starts_with("-");
  const std::string name = is_flag ? argument.substr(0, argument.find('=')) : argument;
  const bool is_verb = !is_flag && !verbs_of(verb).empty();
  const std::string line = fmt::format("unknown {} {}",
                                       is_flag   ? "flag"
                                       : is_verb ? "verb"
                                                 : "argument",
                                       name);
  if (!is_flag && !is_verb) {
    const std::string needed = missing(verb);
    return needed.empty() ? line : fmt::format("{}; expected {}", line, needed);
  }
  std::vector<std::string> known = known_names(&verb);
  if (is_verb && std::find(known.begin(), known.end(), "--" + name) != known.end())
    return fmt::format("{}; did you mean --{}?", line, name);
  std::erase_if(known, [&](const std::string& k) { return k.starts_with("-") != is_flag; });
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string near = nearest(name, views);
  return near.empty() ? line : fmt::format("{}; did you mean {}?", line, near);
}

// "--out: expected DIR after it, got nothing" for "--out: 1 required DIR missing".
std::string without_value(const std::string& message) {
  const std::string_view required = ": 1 required ", end = " missing";
  const size_t at = message.find(required);
  if (at == std::string::npos || !message.ends_with(end)) return message;
  const size_t type = at + required.size();
  return fmt::format("{}: expected {} after it, got nothing", message.substr(0, at),
                     message.substr(type, message.size() - end.size() - type));
}

// "RAPT_THREADS: expected ..." for "--threads: expected ..." where the environment gave the value.
std::string with_variable(const CLI::App& app, const std::vector<std::string>& arguments,
                          const std::string& message) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string flag = option->get_name(), variable = option->get_envname();
    if (variable.empty() || !message.starts_with(flag + ":")) continue;
    const bool given =
        std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
          return argument == flag || argument.starts_with(flag + "=");
        });
    if (!given) return variable + message.substr(flag.size());
  }
  return message;
}

}  // namespace

CLI::Validator whole(int64_t low, int64_t high) {
  const std::string what = high == std::numeric_limits<int64_t>::max()
                               ? fmt::format("a whole number of at least {}", low)
                               : fmt::format("a whole number from {} to {}", low, high);
  return check([=](std::string& text) {
    int64_t value = 0;
    const bool fits = parse(text, value) && value >= low && value <= high;
    return fits ? std::string() : expected(what, text);
  });
}

CLI::Validator number_above_zero() {
  return number("a number above 0", [](double x) { return x > 0 && std::isfinite(x); });
}

CLI::Validator number_from_zero() {
  return number("a number of at least 0", [](double x) { return x >= 0 && std::isfinite(x); });
}

CLI::Validator fraction() {
  return number("a number in [0, 1)", [](double x) { return x >= 0 && x < 1; });
}

CLI::Validator between(double low, double high) {
  return number(fmt::format("a number from {} to {}", low, high),
                [low, high](double x) { return x >= low && x <= high; });
}

CLI::Validator two_columns() {
  const auto is_digit = [](char c) { return c >= '1' && c <= '9'; };
  return check([=](std::string& text) {
    const bool fits = text.size() == 3 && is_digit(text[0]) && text[1] == ',' && is_digit(text[2]);
    return fits ? std::string() : expected("two numbers from 1 to 9 such as 2,1", text);
  });
}

CLI::Validator exponent() { return between(-10, 10); }

CLI::Validator one_of(std::vector<std::string> values) {
  return check([values = std::move(values)](std::string& text) {
    if (std::find(values.begin(), values.end(), text) != values.end()) return std::string();
    return expected(listed(values, "or"), text);
  });
}

CLI::Validator yes_or_no() { return one_of({"1", "0", "true", "false"}); }

CLI::Validator size_text() {
  return check([](std::string& text) -> std::string {
    try {
      parse_size(text);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  });
}

int64_t parse_size(const std::string& text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const std::pair<std::string, double> units[] = {
      {"", 1}, {"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40}};
  for (const auto& [name, factor] : units) {
    const bool named = unit == name || unit == name + "B" || unit == name + "iB";
    if (problem == std::errc() && named && value * factor >= 1 && value * factor < 0x1p62)
      return static_cast<int64_t>(value * factor);
  }
  fail(ErrorKind::usage, "{}", expected("a size such as 500M or 4G", text));
}

const CLI::App& chosen(const CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  return verbs.empty() ? app : chosen(*verbs.front());
}

std::string path_of(const CLI::App& verb) {
  if (verb.get_parent() == nullptr) return "";
  return path_of(*verb.get_parent()) + verb.get_name() + " ";
}

std::string describe(const CLI::App& app, const std::vector<std::string>& arguments,
                     const CLI::ParseError& error) {
  const CLI::App& verb = chosen(app);
  std::string who = path_of(verb);
  if (!who.empty()) who.replace(who.size() - 1, 1, ": ");
  // A misspelt flag often leaves another one missing: the misspelling is what helps. So does that
  // of a verb, whose flags are unknown then, too.
  const std::vector<std::string> extras = app.remaining(true);
  if (&verb == &app && !extras.empty() && !extras.front().starts_with("-"))
    return who + unknown(verb, extras.front());
  const auto flag = std::find_if(extras.begin(), extras.end(),
                                 [](const std::string& text) { return text.starts_with("-"); });
  if (flag != extras.end()) return who + unknown(verb, *flag);
  if (!extras.empty()) return who + unknown(verb, extras.front());
  if (error.get_name() == "RequiredError") {
    std::vector<std::string> verbs;
    for (const CLI::App* known : verbs_of(verb)) verbs.push_back(known->get_name());
    if (verbs.empty()) return fmt::format("{}expected {}", who, missing(verb));
    return fmt::format("{}expected a verb: {}", who, listed(verbs, "or"));
  }
  if (error.get_name() == "ArgumentMismatch") return who + without_value(error.what());
  return who + with_variable(app, arguments, error.what());
}

}  // namespace rapt::cli
