// Loops that only multiply and add, for measuring what a core can do.
#pragma once

#include <cstdint>
#include <span>

namespace rapt::kernels {

// One loop over registers, in one type. Every factor is 1 and every sum starts at 0, so that the
// total of the sums, which run() returns, counts the multiply-adds: rounds * operations / 2. It is
// exact for up to 1,000 rounds; beyond, sums in f32 may stop at 2^24 and those in int32 may wrap,
// at the same speed.
struct PeakLoop {
  const char* name;   // f32, bf16, amx_bf16, int8 or amx_int8
  double operations;  // multiplications and additions in a round
  double (*run)(int64_t rounds);
};

// The loops for the types that the active instruction set has, f32 first.
std::span<const PeakLoop> peak_loops();

}  // namespace rapt::kernels
