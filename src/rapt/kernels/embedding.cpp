#include "rapt/kernels/embedding.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <memory>

#include "rapt/base/memory.h"
#include "rapt/kernels/reference_rows.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/embedding.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/dropout-inl.h"
#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void EmbeddingRows(const EmbeddingArgs<T>& a, T* y, int64_t ldy, int64_t begin, int64_t end,
                   int64_t cols) {
  const float factor = static_cast<float>(a.factor);
  for (int64_t r = begin; r < end; ++r) {
    const RowId id = row_id(a.rows, r);
    const float* table = a.table + a.ids[r] * a.ldt;
    const float* position = a.positions == nullptr ? nullptr : a.positions + id.position * a.ldp;
    T* out = y + r * ldy;
    ForDropped(a.dropout, id, 0, cols, [=](auto d, int64_t i, int64_t count, auto drop) HWY_ATTR {
      const auto f = hn::Set(d, factor);
      const auto t = LoadUpTo(d, table + i, count);
      const auto v =
          position == nullptr ? hn::Mul(f, t) : hn::MulAdd(f, t, LoadUpTo(d, position + i, count));
      StoreUpTo(drop(v), d, out + i, count);
    });
  }
}

// d_row (+)= factor * dropout(dy), columns [begin, end) of one row.
template <class T>
void EmbeddingGradRow(const EmbeddingArgs<T>& a, RowId id, const T* dy, float* d_row, int64_t begin,
                      int64_t end, bool add) {
  const float factor = static_cast<float>(a.factor);
  ForDropped(a.dropout, id, begin, end, [=](auto d, int64_t i, int64_t count, auto drop) HWY_ATTR {
    const auto f = hn::Set(d, factor);
    const auto v = drop(LoadUpTo(d, dy + i, count));
    StoreUpTo(add ? hn::MulAdd(f, v, LoadUpTo(d, d_row + i, count)) : hn::Mul(f, v), d, d_row + i,
              count);
  });
}

// Zeros past the cache: a table's gradient is large and read much later.
void ZeroRow(float* row, int64_t cols) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) / sizeof(float) %
                                               static_cast<uintptr_t>(lanes));
  int64_t i = misaligned == 0 ? 0 : std::min(lanes - misaligned, cols);
  if (i > 0) StorePart(hn::Zero(d), d, row, i);
  for (; i + lanes <= cols; i += lanes) hn::Stream(hn::Zero(d), d, row + i);
  if (i < cols) StorePart(hn::Zero(d), d, row + i, cols - i);
}

constexpr auto& EmbeddingRowsF32 = EmbeddingRows<float>;
constexpr auto& EmbeddingRowsBf16 = EmbeddingRows<bf16>;
constexpr auto& EmbeddingGradRowF32 = EmbeddingGradRow<float>;
constexpr auto& EmbeddingGradRowBf16 = EmbeddingGradRow<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(EmbeddingRowsF32);
HWY_EXPORT(EmbeddingRowsBf16);
HWY_EXPORT(EmbeddingGradRowF32);
HWY_EXPORT(EmbeddingGradRowBf16);
HWY_EXPORT(ZeroRow);

// Columns [begin, end) of the gradient of one row, added or written.
void grad_row(const EmbeddingArgs<float>& a, RowId id, const float* dy, float* d_row, int64_t begin,
              int64_t end, bool add) {
  HWY_DYNAMIC_DISPATCH(EmbeddingGradRowF32)(a, id, dy, d_row, begin, end, add);
}
void grad_row(const EmbeddingArgs<bf16>& a, RowId id, const bf16* dy, float* d_row, int64_t begin,
              int64_t end, bool add) {
  HWY_DYNAMIC_DISPATCH(EmbeddingGradRowBf16)(a, id, dy, d_row, begin, end, add);
}
void grad_row(const EmbeddingArgs<double>& a, RowId id, const double* dy, double* d_row,
              int64_t begin, int64_t end, bool add) {
  if (!add) std::fill(d_row + begin, d_row + end, 0.0);
  reference::embedding_grad_row(a, id, dy, d_row, begin, end);
}

void zero_row(float* row, int64_t cols) { HWY_DYNAMIC_DISPATCH(ZeroRow)(row, cols); }
void zero_row(double* row, int64_t cols) { std::fill(row, row + cols, 0.0); }

// The rows of each id, in order: rows[first[id]] to rows[first[id + 1]].
struct RowsById {
  std::shared_ptr<void> memory;
  int32_t *first, *rows;
};

RowsById sort_rows(const int32_t* ids, int64_t V, int64_t count) {
  RowsById sorted;
  sorted.memory = allocate_block(static_cast<size_t>(V + 2 + count) * sizeof(int32_t));
  // Counted two places up: after the sums next[id] is where the rows of id begin, and as they are
  // placed it moves to where they end, which is where those of id + 1 begin.
  int32_t* counts = static_cast<int32_t*>(sorted.memory.get());
  std::fill(counts, counts + V + 2, 0);
  for (int64_t i = 0; i < count; ++i) ++counts[ids[i] + 2];
  for (int64_t id = 0; id < V; ++id) counts[id + 2] += counts[id + 1];
  int32_t* next = counts + 1;
  sorted.first = counts;
  sorted.rows = counts + V + 2;
  for (int64_t i = 0; i < count; ++i) sorted.rows[next[ids[i]]++] = static_cast<int32_t>(i);
  return sorted;
}

// An id with more rows than this is shared by the threads, each taking some columns.
constexpr int64_t kFrequent = 64;
constexpr int64_t kStrip = 128;  // columns; a multiple of 64 for the sake of dropout

template <class T>
void scatter(const EmbeddingArgs<T>& a, const T* dy, int64_t lddy, Precise<T>* d_table, int64_t V,
             bool first, int64_t count, int64_t cols) {
  if (V <= 0 || cols <= 0) return;
  const RowsById sorted = sort_rows(a.ids, V, count);
  const auto sum_rows = [&](int64_t id, int64_t begin, int64_t end) {
    for (int64_t k = sorted.first[id]; k < sorted.first[id + 1]; ++k) {
      const int64_t row = sorted.rows[k];
      grad_row(a, row_id(a.rows, row), dy + row * lddy, d_table + id * cols, begin, end,
               !first || k > sorted.first[id]);
    }
  };
  parallel_ranges(V, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    for (int64_t id = begin; id < end; ++id) {
      const int64_t rows = sorted.first[id + 1] - sorted.first[id];
      if (rows == 0 && first) zero_row(d_table + id * cols, cols);
      if (rows <= kFrequent) sum_rows(id, 0, cols);
    }
    hwy::FlushStream();
  });
  for (int64_t id = 0; id < V && count > kFrequent; ++id) {
    if (sorted.first[id + 1] - sorted.first[id] <= kFrequent) continue;
    parallel_ranges(cols, kStrip, [&](int64_t begin, int64_t end) { sum_rows(id, begin, end); });
  }
}

}  // namespace

void embedding(const EmbeddingArgs<float>& args, float* y, int64_t ldy, int64_t count,
               int64_t cols) {
  parallel_ranges(count, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(EmbeddingRowsF32)(args, y, ldy, begin, end, cols);
  });
}

void embedding(const EmbeddingArgs<bf16>& args, bf16* y, int64_t ldy, int64_t count, int64_t cols) {
  parallel_ranges(count, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(EmbeddingRowsBf16)(args, y, ldy, begin, end, cols);
  });
}

void embedding(const EmbeddingArgs<double>& args, double* y, int64_t ldy, int64_t count,
               int64_t cols) {
  parallel_ranges(count, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    EmbeddingArgs<double> part = args;
    part.ids += begin;
    part.rows = reference::row_or_null(args.rows, begin, 1);
    reference::embedding(part, y + begin * ldy, ldy, end - begin, cols);
  });
}

void embedding_grad(const EmbeddingArgs<float>& args, const float* dy, int64_t lddy, float* d_table,
                    int64_t V, bool first, int64_t count, int64_t cols) {
  scatter(args, dy, lddy, d_table, V, first, count, cols);
}

void embedding_grad(const EmbeddingArgs<double>& args, const double* dy, int64_t lddy,
                    double* d_table, int64_t V, bool first, int64_t count, int64_t cols) {
  scatter(args, dy, lddy, d_table, V, first, count, cols);
}

void embedding_grad(const EmbeddingArgs<bf16>& args, const bf16* dy, int64_t lddy, float* d_table,
                    int64_t V, bool first, int64_t count, int64_t cols) {
  scatter(args, dy, lddy, d_table, V, first, count, cols);
}

}  // namespace rapt::kernels
#endif
