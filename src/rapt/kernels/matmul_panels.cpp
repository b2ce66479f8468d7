#include "rapt/kernels/matmul_panels.h"

#include <algorithm>
#include <type_traits>

#include "rapt/base/cpu.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/x86/panels.h"

namespace rapt::kernels {
namespace {

using x86::kPanel;
using x86::kStrip;
using x86::kStripSums;
using x86::kStripWords;
using x86::Stored;
using x86::words_of;

// Inner words that are multiplied at a time: a strip of so many stays in the first cache, the
// panels of kWidest columns in the second.
constexpr int64_t kDepth = 384, kWidest = 128;

uint32_t* word_scratch(int slot, int64_t rows, int64_t words) {
  return reinterpret_cast<uint32_t*>(float_scratch(slot, rows, words));
}

// The inner size in equal parts, each a whole number of cache lines but the last.
template <class In>
int64_t depth_of(int64_t inner) {
  const int64_t words = words_of<In>(inner);
  const int64_t depth = round_up(ceil_div(words, ceil_div(words, kDepth)), 16);
  return std::min(inner, depth * x86::kNumbersOfWord<In>);
}

// out (rows, cols) = left right + bias (cols, or null), or out += it.
template <class In, class Out>
struct Product {
  x86::StoredOperand<In> left, right;
  int64_t rows, cols, inner;
  x86::StripEnd<Out> end;

  Product at(const Tile& t) const {
    return {left.at(t.row, 0), right.at(t.col, 0), t.rows, t.cols, inner, end.at(t.row, t.col)};
  }
};

// The strips of a product's rows, packed by all threads.
template <class In>
class Strips {
 public:
  template <class Out>
  explicit Strips(const Product<In, Out>& p)
      : words_(words_of<In>(p.inner)),
        to_(word_scratch(kScratchPartial, ceil_div(p.rows, kStrip) * words_, kStripWords)) {
    constexpr int64_t kTogether = 4 * kStrip;
    parallel_ranges(p.rows, kTogether, [&](int64_t begin, int64_t end) {
      x86::pack_strips(p.left.at(begin, 0), end - begin, p.inner, at(begin, 0));
    });
  }
  // The strip of a row from inner index k on.
  uint32_t* at(int64_t row, int64_t k) const {
    return to_ + (row / kStrip * words_ + words_of<In>(k)) * kStripWords;
  }

 private:
  int64_t words_;
  uint32_t* to_;
};

// A task, whose rows begin at row `first` of the strips: strip by strip and panel by panel, for one
// part of the inner size after the other, for the next of which sums wait.
template <class In, class Out>
void multiply_task(const Product<In, Out>& p, const Strips<In>& strips, int64_t first) {
  const int64_t depth = depth_of<In>(p.inner), across = ceil_div(p.cols, kPanel);
  const bool waits = depth < p.inner;
  float* const waiting =
      float_scratch(kScratchOutput, waits ? ceil_div(p.rows, kStrip) * across : 1, kStripSums);
  uint32_t* const panels = word_scratch(kScratchInput, words_of<In>(depth), across * kPanel);
  for (int64_t k = 0; k < p.inner; k += depth) {
    const int64_t count = std::min(depth, p.inner - k), words = words_of<In>(count);
    const bool last = k + count == p.inner;
    x86::pack_word_panels(p.right.at(0, k), p.cols, count, panels);
    float* sums = waiting;
    for (int64_t row = 0; row < p.rows; row += kStrip) {
      const int64_t rows = std::min(kStrip, p.rows - row);
      for (int64_t panel = 0; panel < across; ++panel, sums += waits ? kStripSums : 0) {
        const int64_t col = panel * kPanel;
        const auto end = p.end.at(row, col);
        if (last) x86::fetch_results(rows, end);
        x86::multiply_strip<In>(strips.at(first + row, k), panels + panel * words * kPanel, words,
                                rows, sums, k > 0);
        if (last) x86::finish_strip(sums, rows, std::min(kPanel, p.cols - col), end);
      }
    }
  }
}

// Rows whose strips are packed together: so many that they are found in the last cache.
int64_t chunk_of(int64_t rows, int64_t words) {
  constexpr int64_t kWords = 2 << 20, kLeast = 16 * kStrip;
  const int64_t most = std::max(kLeast, kWords / (words * kStripWords) * kStrip);
  return round_up(ceil_div(rows, ceil_div(rows, most)), kStrip);
}

// Tiles of many rows, for all of which a task packs its panels, and of as many columns, for all of
// which it reads a strip, as leave enough of them.
template <class Body>
void for_panel_tiles(int64_t rows, int64_t cols, const Body& body) {
  constexpr int64_t kTasks = 16, kHigh = 768;
  const int64_t parts = std::clamp<int64_t>(rows / kHigh, 1, kTasks);
  const int64_t across = ceil_div(kTasks, parts);
  const int64_t width = std::min(kWidest, round_up(ceil_div(cols, across), kPanel));
  for_tiles(rows, cols, round_up(ceil_div(rows, parts), kStrip), width, body);
}

template <class In, class Out>
void multiply_part(const Product<In, Out>& product) {
  const int64_t height = chunk_of(product.rows, words_of<In>(product.inner));
  for (int64_t row = 0; row < product.rows; row += height) {
    const auto chunk = product.at({row, std::min(height, product.rows - row), 0, product.cols});
    const Strips<In> strips(chunk);
    for_panel_tiles(chunk.rows, chunk.cols,
                    [&](const Tile& t) { multiply_task(chunk.at(t), strips, t.row); });
  }
}

// out (rows, cols) = sums without gaps, or out += them.
void round_sums(const float* sums, int64_t rows, int64_t cols, const x86::StripEnd<bf16>& end) {
  parallel_ranges(rows, 64, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r)
      store_sums(sums + r * cols, cols, end.out + r * end.ld, end.accumulate);
  });
}

// Deep products part by part of the inner size, so that strips of many rows are packed together:
// into the result, or where that is bf16 into sums that are rounded once.
template <class In, class Out>
void multiply(const Product<In, Out>& p) {
  constexpr int64_t kDeep = 4096 * x86::kNumbersOfWord<In>;
  if (p.inner <= kDeep) return multiply_part(p);
  constexpr bool kRounds = std::is_same_v<Out, bf16>;
  Product<In, float> part{p.left, p.right, p.rows,
                          p.cols, kDeep,   {p.end.bias, nullptr, p.end.ld, false}};
  if constexpr (kRounds) {
    part.end.out = float_scratch(kScratchOnednn, p.rows, p.cols);
    part.end.ld = p.cols;
  } else {
    part.end.out = p.end.out;
    part.end.accumulate = p.end.accumulate;
  }
  for (int64_t k = 0; k < p.inner; k += kDeep) {
    part.left = p.left.at(0, k);
    part.right = p.right.at(0, k);
    part.inner = std::min(kDeep, p.inner - k);
    multiply_part(part);
    part.end.bias = nullptr;
    part.end.accumulate = true;
  }
  if constexpr (kRounds) round_sums(part.end.out, p.rows, p.cols, p.end);
}

template <class In, class Out>
void multiply_rows(const RowProduct<In, Out>& p, int64_t rows, int64_t cols) {
  const Stored weight = p.weight_transposed ? Stored::by_outer : Stored::by_inner;
  multiply<In, Out>({{p.in, p.ld_in, Stored::by_outer},
                     {p.weight, p.ldw, weight},
                     rows,
                     cols,
                     p.inner,
                     {p.bias, p.out, p.ld_out, p.accumulate}});
}

}  // namespace

bool takes_f32_panels(int64_t rows) {
  constexpr int64_t kMost = 1024;
  const Isa isa = active_isa();
  return isa >= Isa::avx512 && isa < Isa::amx && rows > kFewRows && rows <= kMost;
}

bool has_bf16_panels() { return active_isa() == Isa::avx512_bf16; }

void panel_row_product(const RowProduct<float, float>& p, int64_t rows, int64_t cols) {
  multiply_rows(p, rows, cols);
}
void panel_row_product(const RowProduct<bf16, bf16>& p, int64_t rows, int64_t cols) {
  multiply_rows(p, rows, cols);
}
void panel_row_product(const RowProduct<bf16, float>& p, int64_t rows, int64_t cols) {
  multiply_rows(p, rows, cols);
}

void panel_dw(const bf16* dy, int64_t lddy, const bf16* x, int64_t ldx, float* dw, int64_t lddw,
              int64_t M, int64_t N, int64_t K, bool accumulate) {
  multiply<bf16, float>({{dy, lddy, Stored::by_inner},
                         {x, ldx, Stored::by_inner},
                         N,
                         K,
                         M,
                         {nullptr, dw, lddw, accumulate}});
}

}  // namespace rapt::kernels
