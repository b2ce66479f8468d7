// Loops that only move memory, for measuring how fast it comes and goes.
#pragma once

#include <cstdint>

namespace rapt::kernels {

// Each takes any count; arrays need no alignment.
float read_memory(const float* x, int64_t count);              // returns the sum
void copy_memory(const float* x, float* y, int64_t count);     // with ordinary stores
void update_memory(float* x, int64_t count, float increment);  // adds to each

}  // namespace rapt::kernels
