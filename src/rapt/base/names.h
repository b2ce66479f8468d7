// Names of an enum's values, as flags and files spell them: one table for both ways. For sources
// only.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "rapt/base/check.h"

namespace rapt {

template <class Enum, size_t N>
using NameTable = std::array<std::pair<Enum, std::string_view>, N>;

// The name of a value, which must be in the table.
template <class Enum, size_t N>
std::string_view name_in(const NameTable<Enum, N>& names, Enum value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  fail(ErrorKind::failure, "internal error: there is no name for value {} of {}",
       static_cast<int>(value), N);
}

// The value of a name. Throws Error (usage) for a name that the table lacks: "`what`: expected one
// of 13a, intl, char; got x".
template <class Enum, size_t N>
Enum value_in(const NameTable<Enum, N>& names, std::string_view name, std::string_view what) {
  std::string all;
  for (const auto& [value, known] : names) {
    if (known == name) return value;
    all.append(all.empty() ? "" : ", ").append(known);
  }
  fail(ErrorKind::usage, "{}: expected one of {}; got {}", what, all, name);
}

}  // namespace rapt
