// Arithmetic on sizes that come from outside: an overflow is an Error, never a small number.
#pragma once

#include <concepts>
#include <cstdint>

#include "rapt/base/check.h"

namespace rapt {

template <std::integral T>
T checked_add(T a, T b, const char* who) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum))
    fail(ErrorKind::failure, "{}: the sum {} + {} is too large", who, a, b);
  return sum;
}

template <std::integral T>
T checked_mul(T a, T b, const char* who) {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) {
    fail(ErrorKind::failure, "{}: the product {} x {} is too large", who, a, b);
  }
  return product;
}

// `value` as a To; throws Error where it does not fit.
template <std::integral To, std::integral From>
To narrow(From value, const char* who) {
  if (!std::in_range<To>(value)) fail(ErrorKind::failure, "{}: {} is out of range", who, value);
  return static_cast<To>(value);
}

}  // namespace rapt
