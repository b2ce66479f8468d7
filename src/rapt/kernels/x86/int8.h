// int8 products by the instructions that Highway lacks, for the sources of kernels/ alone.
//
// Both read panels of 32 outputs cut into blocks of 64 inner numbers: two tiles of 16 outputs, each
// of 16 rows of 64 bytes, a row four inner numbers of each output.
#pragma once

#include "rapt/kernels/int8_rows.h"

namespace rapt::kernels::x86 {

void int8_dot_vnni(const Int8Product& product, const Int8Result& result);   // AVX-512 VNNI
void int8_dot_tiles(const Int8Product& product, const Int8Result& result);  // AMX

}  // namespace rapt::kernels::x86
