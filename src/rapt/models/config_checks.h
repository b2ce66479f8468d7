// What configurations of models ask of their values. All throw Error that names the setting.
#pragma once

#include <cstdint>
#include <string>

namespace rapt::models {

void check_positive(const char* name, int64_t value);    // at least 1
void check_probability(const char* name, double value);  // in [0, 1): of dropping
void check_activation(const std::string& name);          // one that is known
// Settings that every stack of layers has.
void check_layers(int64_t d_model, int64_t nhead, int64_t dim_feedforward, int64_t num_layers);

}  // namespace rapt::models
