// What the signatures of the kernels share. A row-major matrix is a pointer to its first element
// and a leading dimension: the elements from one row to the next.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "rapt/base/random.h"

namespace rapt {

// bfloat16: the upper half of a float. Conversion rounds to nearest even and keeps NaN.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const bool nan = (word & 0x7FFFFFFFu) > 0x7F800000u;
    bits = static_cast<uint16_t>((nan ? word | 0x00400000u : word + 0x7FFFu + (word >> 16 & 1u)) >>
                                 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// What goes with activations of T where accuracy is kept: parameters, their gradients, sums,
// losses.
template <class T>
using Precise = std::conditional_t<std::is_same_v<T, bf16>, float, T>;

namespace kernels {

// One row of a packed batch, as the random numbers of dropout see it.
struct RowId {
  uint64_t sample = 0;
  uint32_t position = 0;
};

// That of row `row`. `ids` may be null where nothing asks which row it is, as without dropout.
inline RowId row_id(const RowId* ids, int64_t row) { return ids == nullptr ? RowId{} : ids[row]; }

// One sentence of a packed batch: `count` rows from `row` on; its first token stands at `position`.
struct Segment {
  int64_t row = 0;
  int64_t count = 0;
  int64_t position = 0;
  uint64_t sample = 0;
};

// Dropout at one site; probability 0 leaves everything as it is. Kept elements are scaled by
// 1 / (1 - probability). Which are dropped: philox_element() of base/random.h.
struct Dropout {
  double probability = 0;
  PhiloxKey key{};
};

// Functions of single elements; elementwise.h has their formulas.
enum class Activation { relu, gelu, gelu_tanh };

}  // namespace kernels
}  // namespace rapt
