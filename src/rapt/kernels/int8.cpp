#include "rapt/kernels/int8.h"

#include <algorithm>
#include <numeric>

#include "rapt/base/cpu.h"
#include "rapt/base/memory.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/int8_rows.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/x86/int8.h"

namespace rapt::kernels {
namespace {

constexpr int64_t kTile = 16;  // outputs of half a panel; also rows of four inner numbers

// Whether panels are cut into tiles for VNNI and AMX; else each output's numbers lie side by side.
bool has_tiles() { return active_isa() >= Isa::avx512_bf16; }

// The place of number k of output n in a panel.
int64_t place_of(int64_t n, int64_t k, int64_t padded, bool tiles) {
  if (!tiles) return n * padded + k;
  const int64_t row = k % kInt8Block / 4;
  return k / kInt8Block * (kInt8Block * kInt8Panel) + n / kTile * (kTile * kInt8Block) +
         row * kInt8Block + n % kTile * 4 + k % 4;
}

void multiply(const Int8Product& product, const Int8Result& result) {
  const Isa isa = active_isa();
  if (isa >= Isa::amx) return x86::int8_dot_tiles(product, result);
  if (isa >= Isa::avx512_bf16) return x86::int8_dot_vnni(product, result);
  int8_dot(product, result);
}

// The rows of x in u8, and how.
struct Quantised {
  uint8_t* x;
  int64_t ldx;
  Int8Row* rows;
};

Quantised quantise(const float* x, int64_t ldx, int64_t M, int64_t K) {
  const int64_t ld = round_up(K, kInt8Block) + kInt8Block;  // no multiple of 4096 bytes
  const int64_t padded = round_up(M, kInt8Panel);
  const Quantised q{
      static_cast<uint8_t*>(thread_scratch(kScratchInput, static_cast<size_t>(padded * ld))), ld,
      static_cast<Int8Row*>(
          thread_scratch(kScratchPartial, static_cast<size_t>(M) * sizeof(Int8Row)))};
  parallel_ranges(M, std::max<int64_t>(1, (1 << 15) / K), [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m)
      q.rows[m] = int8_quantise_row(x + m * ldx, K, q.x + m * ld);
  });
  return q;
}

}  // namespace

void int8_quantise(const float* w, int64_t ldw, int64_t N, int64_t K, int8_t* q, float* scales) {
  parallel_ranges(N, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(K, 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t n = begin; n < end; ++n)
                      scales[n] = int8_quantise_output(w + n * ldw, K, q + n * K);
                  });
}

int64_t int8_outputs(int64_t N) { return round_up(N, kInt8Panel); }

size_t int8_packed_bytes(int64_t N, int64_t K) {
  return static_cast<size_t>(int8_outputs(N) * round_up(K, kInt8Block));
}

void int8_pack(const int8_t* q, int64_t N, int64_t K, int8_t* packed, int32_t* sums) {
  const bool tiles = has_tiles();
  const int64_t padded = round_up(K, kInt8Block);
  parallel_for(int8_outputs(N) / kInt8Panel, [&](int64_t i) {
    const int64_t first = i * kInt8Panel;
    int8_t* const panel = packed + first * padded;
    std::fill_n(panel, kInt8Panel * padded, int8_t{0});
    std::fill_n(sums + first, kInt8Panel, 0);
    for (int64_t n = first; n < std::min(first + kInt8Panel, N); ++n) {
      const int8_t* const from = q + n * K;
      for (int64_t k = 0; k < K; ++k) panel[place_of(n - first, k, padded, tiles)] = from[k];
      sums[n] = std::accumulate(from, from + K, 0);
    }
  });
}

void int8_row(const Int8Weight& w, int64_t n, float* x) {
  const bool tiles = has_tiles();
  const int64_t padded = round_up(w.K, kInt8Block), first = n / kInt8Panel * kInt8Panel;
  const int8_t* const panel = w.packed + first * padded;
  const float scale = w.scales[n];
  for (int64_t k = 0; k < w.K; ++k)
    x[k] = scale * static_cast<float>(panel[place_of(n - first, k, padded, tiles)]);
}

// Tasks are some panels by at most 256 rows. A task of few rows reads at least 64 KiB of the
// weight, since handing it out takes as long as that.
void int8_linear(const float* x, int64_t ldx, const Int8Weight& w, int64_t begin, int64_t count,
                 const float* bias, float* y, int64_t ldy, int64_t M) {
  if (M == 0 || count == 0) return;
  if (w.K == 0) return fill_rows(bias, y, ldy, M, count);
  constexpr int64_t kTasks = 8, kRows = 256, kLeastBytes = 1 << 16;
  const int64_t K = round_up(w.K, kInt8Block);
  const Quantised q = quantise(x, ldx, M, w.K);
  const Int8Result result{q.rows, w.scales, w.sums, bias, y, ldy, begin, begin + count};
  const int64_t first = begin / kInt8Panel, last = ceil_div(begin + count, kInt8Panel);
  const int64_t chunks = ceil_div(M, kRows), least = ceil_div(kLeastBytes, kInt8Panel * K);
  const int64_t width = std::max(ceil_div(last - first, ceil_div(kTasks, chunks)), least);
  for_tiles(M, last - first, kRows, width, [&](const Tile& t) {
    multiply({q.x, q.ldx, t.row, t.rows, w.packed, K, first + t.col, first + t.col + t.cols},
             result);
  });
}

}  // namespace rapt::kernels
