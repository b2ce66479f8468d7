// Elements of files as elements of tensors. For sources only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rapt/models/safetensors.h"

namespace rapt::models {

// Converts `count` elements; returns the index of the first one that does not fit, else `count`.
using Conversion = int64_t (*)(const std::byte* from, void* to, int64_t count);

// nullptr where elements of `from` are not read as `to`.
Conversion conversion(FileType from, DType to);

}  // namespace rapt::models
