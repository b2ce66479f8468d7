// RAPT_CHECK for users' mistakes, RAPT_ASSERT for ours, fail() where there is nothing to test.
// All throw rapt::Error. For sources only: public headers do not include it.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "rapt/base/error.h"

namespace rapt {

// Throws Error with the formatted message.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...), kind);
}

// Runs `body`; a general failure that leaves it becomes one of `kind`, with `where: ` before it.
template <class Body>
decltype(auto) with_error_kind(ErrorKind kind, const std::string& where, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::failure) throw;
    throw Error(where.empty() ? error.what() : where + ": " + error.what(), kind);
  }
}

}  // namespace rapt

#define RAPT_CHECK(condition, ...)                                           \
  do {                                                                       \
    if (!(condition)) ::rapt::fail(::rapt::ErrorKind::failure, __VA_ARGS__); \
  } while (false)

#define RAPT_ASSERT(condition)                                                              \
  do {                                                                                      \
    if (!(condition))                                                                       \
      ::rapt::fail(::rapt::ErrorKind::failure, "internal error at {}:{}: {} does not hold", \
                   __FILE__, __LINE__, #condition);                                         \
  } while (false)
