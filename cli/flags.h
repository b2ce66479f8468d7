// Flags: which values they take, and what a wrong command line is told.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace rapt::cli {

// Checks of a flag's value, whose messages say what was expected and what came.
CLI::Validator whole(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
CLI::Validator number_above_zero();
CLI::Validator number_from_zero();
CLI::Validator fraction();  // a number in [0, 1)
CLI::Validator between(double low, double high);
CLI::Validator exponent();     // a number from -10 to 10
CLI::Validator two_columns();  // such as 2,1
CLI::Validator one_of(std::vector<std::string> values);
CLI::Validator yes_or_no();  // of a flag without a value, for its variable in the environment
CLI::Validator size_text();  // what parse_size takes

// "64M", "2G", "500000" as bytes; throws Error (usage) otherwise.
int64_t parse_size(const std::string& text);

// What to say about a command line that `error` refused: one line that names a flag or verb that
// does not exist, and the nearest that does. A bad value that no flag of `arguments` gave is the
// environment's, and its variable is named.
std::string describe(const CLI::App& app, const std::vector<std::string>& arguments,
                     const CLI::ParseError& error);

// The verb that was given, or the program.
const CLI::App& chosen(const CLI::App& app);

// What stands before a verb's flags: "translate ", "tokenize encode "; nothing for the program.
std::string path_of(const CLI::App& verb);

}  // namespace rapt::cli
