// The header of a safetensors file as a list of tensors. For sources only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rapt/models/safetensors.h"

namespace rapt::models {

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their data
  Metadata metadata;
};

// Parses and checks a header. `data_begin` is the place of the data in the file, `data_bytes` its
// length. Throws Error (model) as the constructor of SafetensorsFile says; `name` is the file's.
SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_begin,
                                           int64_t data_bytes, const std::string& name,
                                           const Limits& limits);

}  // namespace rapt::models
