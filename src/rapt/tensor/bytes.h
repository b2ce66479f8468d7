// How much an op reads and writes, for the profile: the bytes of its tensors, each passed over
// once.
#pragma once

#include "rapt/tensor/tensor.h"

namespace rapt {

template <class... Tensors>
double bytes_of(const Tensors&... tensors) {
  const auto bytes = [](const Tensor& t) {
    return t.defined() ? static_cast<double>(t.numel() * size_of(t.dtype())) : 0.0;
  };
  return (0.0 + ... + bytes(tensors));
}

}  // namespace rapt
