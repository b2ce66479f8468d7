// Loops that only multiply and add, for measuring what a core can do.
#pragma once

#include <cstdint>

namespace rapt::kernels {

// `rounds` times a multiply-add on each of many independent vectors of floats. Returns a value that
// depends on all.
float multiply_add_rounds(int64_t rounds);
double flops_per_round();

}  // namespace rapt::kernels
