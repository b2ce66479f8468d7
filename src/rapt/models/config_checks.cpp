#include "rapt/models/config_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "rapt/base/check.h"
#include "rapt/nn/feed_forward.h"

namespace rapt::models {

void check_positive(const char* name, int64_t value) {
  RAPT_CHECK(value >= 1, "{}: expected at least 1, got {}", name, value);
}

void check_probability(const char* name, double value) {
  RAPT_CHECK(value >= 0 && value < 1, "{}: expected a number in [0, 1), got {}", name, value);
}

void check_activation(const std::string& name) {
  [[maybe_unused]] const nn::Activation known{name};  // throws for another name
}

void check_layers(int64_t d_model, int64_t nhead, int64_t dim_feedforward, int64_t num_layers) {
  check_positive("d_model", d_model);
  check_positive("nhead", nhead);
  check_positive("dim_feedforward", dim_feedforward);
  RAPT_CHECK(num_layers >= 0, "num_layers: expected at least 0, got {}", num_layers);
  if (d_model % nhead == 0) return;
  int64_t less = std::min(nhead, d_model), more = less;
  while (d_model % less != 0) --less;
  while (d_model % more != 0) ++more;
  fail(ErrorKind::failure, "nhead {} does not divide d_model {}; {}", nhead, d_model,
       less == more ? fmt::format("{} does", less) : fmt::format("{} and {} do", less, more));
}

}  // namespace rapt::models
