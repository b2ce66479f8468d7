// Attention's products on the tiles of AMX, and what the core computes while they run: the tiles
// multiply one piece of the scores while the core turns another into weights.
//
// Operands are those of split_tiles.h, of one part or of kExactParts. Where a call has several
// products they are computed in order; none may read what the call computes beside them.
#pragma once

#include <cstdint>
#include <span>

#include "rapt/kernels/x86/split_tiles.h"

namespace rapt::kernels::x86 {

void multiply(std::span<const PackedProduct> products, int parts);

// 2^(scores - base): the weights of at most kPanel queries, `cols` keys (whole vectors of 16) each.
struct Weighing {
  const float* scores;  // kPanel rows `ld` apart, whole blocks
  int64_t ld, rows, cols;
  const float* base;     // of each of kPanel rows; 2^(minus infinity) is 0, NaN stays
  const uint32_t* keep;  // bits of 32 columns each, whole blocks of a row side by side; null: all
  float* sums;           // of a row's weights, those not kept among them
  void* packed;          // those kept, as a left operand with the keys inside
};

// Weighs while it multiplies.
void multiply(std::span<const PackedProduct> products, int parts, const Weighing& weighing);

// From scores and the gradients of weights to the gradients of the scores: with w = share *
// 2^(score - most) and kept = keep ? 1 / (1 - p) : 0,
//   weight = kept w        d_score = w (kept d_weight - delta)
struct Slopes {
  const float* scores;  // whole blocks of rows `ld` apart
  float* d_weights;     // become the d_scores if `store`
  int64_t ld, rows, cols;
  const float *most, *share, *delta;  // of whole blocks of rows
  const uint32_t* keep;               // as above
  float kept = 1, scale = 1;
  bool store = false;
  void* weights;          // as a right operand with the queries inside
  void* d_scores;         // times scale: as a left operand with the keys inside,
  void* d_scores_across;  // and as a right one with the queries inside
};

void multiply(std::span<const PackedProduct> products, int parts, const Slopes& slopes);

}  // namespace rapt::kernels::x86
