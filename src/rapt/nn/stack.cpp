#include "rapt/nn/stack.h"

#include "rapt/base/check.h"

namespace rapt::nn {

void check_num_layers(const char* who, int64_t num_layers) {
  RAPT_CHECK(num_layers >= 0, "{}: expected at least 0 layers, got {}", who, num_layers);
}

}  // namespace rapt::nn
