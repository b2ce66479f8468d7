// f32 products of a frozen model on bf16 tiles: y = x w^T + bias, from a weight that is kept in the
// order in which the tiles want it, panels of 32 outputs by inner index. It takes no more memory
// than the plain layout; its numbers are taken apart (x86/split_tiles.h) while the tiles multiply.
//
// Sizes: M rows (tokens), K input channels, N output channels. The bits of a row do not depend on
// the other rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rapt::kernels {

// Whether this CPU and the active instruction set have the tiles; else no weight is kept so.
bool has_panels();

// Floats of a weight in panels; it is aligned to 64 bytes.
size_t panel_floats(int64_t N, int64_t K);

// False, and what is written means nothing, where a number of w (N, K) is not finite or nearly so
// large that bf16 cannot say it.
bool pack_panels(const float* w, int64_t ldw, int64_t N, int64_t K, float* panels);

// The outputs [begin, begin + count) of a weight with K inputs; `begin` is a multiple of 32. bias
// (count) may be null.
void panel_linear(const float* x, int64_t ldx, const float* panels, int64_t K, int64_t begin,
                  int64_t count, const float* bias, float* y, int64_t ldy, int64_t M);

}  // namespace rapt::kernels
