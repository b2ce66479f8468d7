#include "rapt/ops/checks.h"

#include "rapt/base/check.h"

namespace rapt {

void check_linear(const char* who, const Tensor& x, const Tensor& w, const Tensor& b) {
  RAPT_CHECK(x.rank() == 2 && w.rank() == 2,
             "{}: expected x (N, in) and w (out, in), got {} and {}", who, x.shape().text(),
             w.shape().text());
  RAPT_CHECK(x.dim(1) == w.dim(1), "{}: expected {} input channels, got {}", who, w.dim(1),
             x.dim(1));
  RAPT_CHECK(x.dtype() == w.dtype(), "{}: expected one type, got x {} and w {}", who,
             dtype_name(x.dtype()), dtype_name(w.dtype()));
  if (!b.defined()) return;
  RAPT_CHECK(b.rank() == 1 && b.dim(0) == w.dim(0), "{}: expected a bias of {}, got {}", who,
             w.dim(0), b.shape().text());
  RAPT_CHECK(b.dtype() == precise(x.dtype()), "{}: expected a bias of {}, got {}", who,
             dtype_name(precise(x.dtype())), dtype_name(b.dtype()));
}

int64_t count_targets(const char* who, const Tensor& targets, int64_t N, int64_t V,
                      const CrossEntropyOptions& options) {
  RAPT_CHECK(targets.rank() == 1 && targets.dim(0) == N && targets.dtype() == DType::i32,
             "{}: expected {} targets of i32, got {} of {}", who, N, targets.shape().text(),
             dtype_name(targets.dtype()));
  RAPT_CHECK(options.label_smoothing >= 0 && options.label_smoothing <= 1,
             "{}: expected label_smoothing in [0, 1], got {}", who, options.label_smoothing);
  int64_t count = 0;
  const int32_t* target = targets.data<int32_t>();
  for (int64_t i = 0; i < N; ++i) {
    if (target[i] == options.ignore_index) continue;
    RAPT_CHECK(target[i] >= 0 && target[i] < V, "{}: expected targets below {}, got {} in row {}",
               who, V, target[i], i);
    ++count;
  }
  return count;
}

}  // namespace rapt
