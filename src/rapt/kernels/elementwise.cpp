#include "rapt/kernels/elementwise.h"

#include <vector>

#include "rapt/kernels/reference_elementwise.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void AddRows(const T* a, int64_t lda, const T* b, int64_t ldb, T* y, int64_t ldy, int64_t rows,
             int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    MapRow(a + i * lda, b + i * ldb, y + i * ldy, cols,
           [](auto, auto u, auto v) HWY_ATTR { return hn::Add(u, v); });
  }
}

template <class T>
void MultiplyRows(const T* a, int64_t lda, const T* b, int64_t ldb, T* y, int64_t ldy, int64_t rows,
                  int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    MapRow(a + i * lda, b + i * ldb, y + i * ldy, cols,
           [](auto, auto u, auto v) HWY_ATTR { return hn::Mul(u, v); });
  }
}

template <class T>
void ScaleRows(const T* x, int64_t ldx, float factor, T* y, int64_t ldy, int64_t rows, int64_t cols,
               bool accumulate) {
  const auto f = hn::Set(hn::ScalableTag<float>(), factor);
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = x + i * ldx;
    T* to = y + i * ldy;
    if (accumulate) {
      MapRow(from, to, to, cols,
             [f](auto, auto u, auto v) HWY_ATTR { return hn::MulAdd(f, u, v); });
    } else {
      MapRow(from, to, cols, [f](auto, auto u) HWY_ATTR { return hn::Mul(f, u); });
    }
  }
}

template <class T>
void FillRows(T* y, int64_t ldy, float value, int64_t rows, int64_t cols) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  const auto v = hn::Set(d, value);
  for (int64_t i = 0; i < rows; ++i, y += ldy) {
    for (int64_t j = 0; j < cols; j += lanes) StoreUpTo(v, d, y + j, cols - j);
  }
}

constexpr auto& AddRowsF32 = AddRows<float>;
constexpr auto& AddRowsBf16 = AddRows<bf16>;
constexpr auto& MultiplyRowsF32 = MultiplyRows<float>;
constexpr auto& MultiplyRowsBf16 = MultiplyRows<bf16>;
constexpr auto& ScaleRowsF32 = ScaleRows<float>;
constexpr auto& ScaleRowsBf16 = ScaleRows<bf16>;
constexpr auto& FillRowsF32 = FillRows<float>;
constexpr auto& FillRowsBf16 = FillRows<bf16>;

// The sum of f(x) in f64. Element i goes to total i % 32, whatever the vectors' length: the bits
// are the same on every instruction set, as long as f is exact.
template <class F>
HWY_INLINE double SumOf(const float* x, int64_t n, const F& f) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> d32;
  const int64_t lanes = LaneCount(d), whole = n / 32 * 32;
  HWY_ALIGN double totals[32];
  for (int64_t first = 0; first < 32; first += 4 * lanes) {
    auto t0 = hn::Zero(d), t1 = t0, t2 = t0, t3 = t0;
    for (int64_t i = first; i < whole; i += 32) {
      t0 = hn::Add(t0, f(hn::PromoteTo(d, hn::LoadU(d32, x + i))));
      t1 = hn::Add(t1, f(hn::PromoteTo(d, hn::LoadU(d32, x + i + lanes))));
      t2 = hn::Add(t2, f(hn::PromoteTo(d, hn::LoadU(d32, x + i + 2 * lanes))));
      t3 = hn::Add(t3, f(hn::PromoteTo(d, hn::LoadU(d32, x + i + 3 * lanes))));
    }
    hn::Store(t0, d, totals + first);
    hn::Store(t1, d, totals + first + lanes);
    hn::Store(t2, d, totals + first + 2 * lanes);
    hn::Store(t3, d, totals + first + 3 * lanes);
  }
  const hn::CappedTag<double, 1> d1;
  for (int64_t i = whole; i < n; ++i) {
    totals[i - whole] += hn::GetLane(f(hn::Set(d1, static_cast<double>(x[i]))));
  }
  for (int64_t width = 16; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) totals[i] += totals[i + width];
  }
  return totals[0];
}

double Sum(const float* x, int64_t n) {
  return SumOf(x, n, [](auto v) HWY_ATTR { return v; });
}

// The square of an f32 number is exact in f64.
double SumOfSquares(const float* x, int64_t n) {
  return SumOf(x, n, [](auto v) HWY_ATTR { return hn::Mul(v, v); });
}

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(AddRowsF32);
HWY_EXPORT(AddRowsBf16);
HWY_EXPORT(MultiplyRowsF32);
HWY_EXPORT(MultiplyRowsBf16);
HWY_EXPORT(ScaleRowsF32);
HWY_EXPORT(ScaleRowsBf16);
HWY_EXPORT(FillRowsF32);
HWY_EXPORT(FillRowsBf16);
HWY_EXPORT(Sum);
HWY_EXPORT(SumOfSquares);

// The sum over blocks of n elements, added in order.
template <class T, class BlockSum>
double sum_blocks(const T* x, int64_t n, const BlockSum& block_sum) {
  std::vector<double> sums(static_cast<size_t>((n + kPieceElements - 1) / kPieceElements));
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    sums[static_cast<size_t>(begin / kPieceElements)] = block_sum(x + begin, end - begin);
  });
  double total = 0;
  for (const double block : sums) total += block;
  return total;
}

// y = f(a, b) by pieces; f(a, lda, b, ldb, y, ldy, rows, cols).
template <class T, class F>
void combine(const T* a, int64_t lda, const T* b, int64_t ldb, T* y, int64_t ldy, int64_t rows,
             int64_t cols, const F& f) {
  const bool contiguous = lda == cols && ldb == cols && ldy == cols;
  for_pieces(rows, cols, contiguous, [&](const Piece& p) {
    f(a + p.row * lda + p.column, lda, b + p.row * ldb + p.column, ldb, y + p.row * ldy + p.column,
      ldy, p.rows, p.cols);
  });
}

// y = f(x) by pieces; f(x, ldx, y, ldy, rows, cols).
template <class T, class F>
void map(const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows, int64_t cols, const F& f) {
  for_pieces(rows, cols, ldx == cols && ldy == cols, [&](const Piece& p) {
    f(x + p.row * ldx + p.column, ldx, y + p.row * ldy + p.column, ldy, p.rows, p.cols);
  });
}

// y = value by pieces; f(y, ldy, rows, cols).
template <class T, class F>
void set(T* y, int64_t ldy, int64_t rows, int64_t cols, const F& f) {
  for_pieces(rows, cols, ldy == cols,
             [&](const Piece& p) { f(y + p.row * ldy + p.column, ldy, p.rows, p.cols); });
}

}  // namespace

void add(const float* a, int64_t lda, const float* b, int64_t ldb, float* y, int64_t ldy,
         int64_t rows, int64_t cols) {
  combine(a, lda, b, ldb, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(AddRowsF32));
}
void add(const double* a, int64_t lda, const double* b, int64_t ldb, double* y, int64_t ldy,
         int64_t rows, int64_t cols) {
  combine(a, lda, b, ldb, y, ldy, rows, cols, reference::add<double>);
}
void add(const bf16* a, int64_t lda, const bf16* b, int64_t ldb, bf16* y, int64_t ldy, int64_t rows,
         int64_t cols) {
  combine(a, lda, b, ldb, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(AddRowsBf16));
}

void multiply(const float* a, int64_t lda, const float* b, int64_t ldb, float* y, int64_t ldy,
              int64_t rows, int64_t cols) {
  combine(a, lda, b, ldb, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(MultiplyRowsF32));
}
void multiply(const double* a, int64_t lda, const double* b, int64_t ldb, double* y, int64_t ldy,
              int64_t rows, int64_t cols) {
  combine(a, lda, b, ldb, y, ldy, rows, cols, reference::multiply<double>);
}
void multiply(const bf16* a, int64_t lda, const bf16* b, int64_t ldb, bf16* y, int64_t ldy,
              int64_t rows, int64_t cols) {
  combine(a, lda, b, ldb, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(MultiplyRowsBf16));
}

void scale(const float* x, int64_t ldx, double factor, float* y, int64_t ldy, int64_t rows,
           int64_t cols, bool accumulate) {
  map(x, ldx, y, ldy, rows, cols,
      [&](auto* from, int64_t ldf, auto* to, int64_t ldt, auto... size) {
        HWY_DYNAMIC_DISPATCH(ScaleRowsF32)
        (from, ldf, static_cast<float>(factor), to, ldt, size..., accumulate);
      });
}
void scale(const double* x, int64_t ldx, double factor, double* y, int64_t ldy, int64_t rows,
           int64_t cols, bool accumulate) {
  map(x, ldx, y, ldy, rows, cols,
      [&](auto* from, int64_t ldf, auto* to, int64_t ldt, auto... size) {
        reference::scale(from, ldf, factor, to, ldt, size..., accumulate);
      });
}
void scale(const bf16* x, int64_t ldx, double factor, bf16* y, int64_t ldy, int64_t rows,
           int64_t cols, bool accumulate) {
  map(x, ldx, y, ldy, rows, cols,
      [&](auto* from, int64_t ldf, auto* to, int64_t ldt, auto... size) {
        HWY_DYNAMIC_DISPATCH(ScaleRowsBf16)
        (from, ldf, static_cast<float>(factor), to, ldt, size..., accumulate);
      });
}

void fill(float* y, int64_t ldy, double value, int64_t rows, int64_t cols) {
  set(y, ldy, rows, cols, [&](float* to, int64_t ld, auto... size) {
    HWY_DYNAMIC_DISPATCH(FillRowsF32)(to, ld, static_cast<float>(value), size...);
  });
}
void fill(double* y, int64_t ldy, double value, int64_t rows, int64_t cols) {
  set(y, ldy, rows, cols,
      [&](double* to, int64_t ld, auto... size) { reference::fill(to, ld, value, size...); });
}
void fill(bf16* y, int64_t ldy, double value, int64_t rows, int64_t cols) {
  set(y, ldy, rows, cols, [&](bf16* to, int64_t ld, auto... size) {
    HWY_DYNAMIC_DISPATCH(FillRowsBf16)(to, ld, static_cast<float>(value), size...);
  });
}

double sum(const float* x, int64_t n) {
  return sum_blocks(x, n, [](const float* block, int64_t count) {
    return HWY_DYNAMIC_DISPATCH(Sum)(block, count);
  });
}
double sum(const double* x, int64_t n) { return sum_blocks(x, n, reference::sum<double>); }

double sum_of_squares(const float* x, int64_t n) {
  return sum_blocks(x, n, [](const float* block, int64_t count) {
    return HWY_DYNAMIC_DISPATCH(SumOfSquares)(block, count);
  });
}
double sum_of_squares(const double* x, int64_t n) {
  return sum_blocks(x, n, reference::sum_of_squares<double>);
}

}  // namespace rapt::kernels
#endif
