// A small schema for tests: a number, a word, a file, a flag of one call.
#pragma once

#include "rapt/config/settings.h"
#include "tests/testing/testing.h"

namespace rapt::config::testing {

using namespace rapt::testing;

inline Schema small_schema() {
  const auto anything = [](const std::string&) { return true; };
  std::vector<Key> keys(5);
  keys[0] = {.name = "dropout",
             .expected = "a number in [0, 1)",
             .help = "Share that is dropped",
             .built_in = "0.1",
             .takes = [](const std::string& text) { return text.starts_with("0."); }};
  keys[1] = {.name = "schedule",
             .expected = "text",
             .help = "The rate",
             .built_in = "constant",
             .takes = anything};
  keys[2] = {.name = "learning-rate",
             .expected = "a number above 0",
             .help = "The highest rate",
             .built_in = "",
             .takes = anything};
  keys[3] = {.name = "source",
             .expected = "a file",
             .help = "Text",
             .built_in = "",
             .is_path = true,
             .takes = anything};
  keys[4] = {.name = "out",
             .expected = "a folder",
             .help = "The folder",
             .built_in = "",
             .is_for_one_call = true,
             .takes = anything};
  return Schema(std::move(keys));
}

inline std::string all_of(const std::vector<Error>& problems) {
  std::string text;
  for (const Error& problem : problems) text += std::string(problem.what()) + "\n";
  return text;
}

}  // namespace rapt::config::testing
