// Peak loops of the instructions that Highway 1.0.3 lacks; kernels/peak.h says what they return.
// Each may run only where active_isa() reaches what its comment names.
#pragma once

#include <cstdint>

namespace rapt::kernels::x86 {

inline constexpr double kBf16Operations = 12 * 2 * 16 * 2;  // twelve products: 16 sums of 2 terms
inline constexpr double kInt8Operations = 12 * 2 * 16 * 4;  // twelve products: 16 sums of 4 terms
inline constexpr double kAmxBf16Operations = 4 * 2 * 16 * 16 * 32;  // four, 16 x 32 by 32 x 16
inline constexpr double kAmxInt8Operations = 4 * 2 * 16 * 16 * 64;  // four, 16 x 64 by 64 x 16

double bf16_rounds(int64_t rounds);  // avx512_bf16
double int8_rounds(int64_t rounds);  // avx512_bf16, which includes VNNI; unsigned by signed bytes
double amx_bf16_rounds(int64_t rounds);  // amx
double amx_int8_rounds(int64_t rounds);  // amx; unsigned by signed bytes

}  // namespace rapt::kernels::x86
