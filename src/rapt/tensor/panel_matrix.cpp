#include "rapt/tensor/panel_matrix.h"

#include <algorithm>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/panels.h"

namespace rapt {

std::shared_ptr<const PanelMatrix> PanelMatrix::of(const Tensor& w) {
  RAPT_CHECK(w.rank() == 2 && w.dtype() == DType::f32,
             "PanelMatrix: expected a matrix of f32, got {} of {}", w.shape().text(),
             dtype_name(w.dtype()));
  if (!kernels::has_panels()) return nullptr;
  std::shared_ptr<void> block = allocate_block(
      std::max<size_t>(1, kernels::panel_floats(w.dim(0), w.dim(1))) * sizeof(float));
  if (!kernels::pack_panels(w.data<float>(), w.row_stride(), w.dim(0), w.dim(1),
                            static_cast<float*>(block.get())))
    return nullptr;
  return std::shared_ptr<const PanelMatrix>(new PanelMatrix(w.dim(0), w.dim(1), std::move(block)));
}

}  // namespace rapt
