#include "rapt/models/int8_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "rapt/base/check.h"
#include "rapt/models/checkpoint.h"

namespace rapt::models {
namespace {

std::vector<float> read_scales(const SafetensorsFile& file, const TensorInfo& info) {
  const TensorInfo& scale = file.at(scale_name(info.name));
  RAPT_CHECK(scale.shape == std::vector<int64_t>{info.shape[0]},
             "{}: expected a scale for each of the {} rows of {}, got shape {}", scale.name,
             info.shape[0], info.name, Shape(scale.shape).text());
  std::vector<float> scales(static_cast<size_t>(info.shape[0]));
  file.read(scale, std::span(scales));
  for (size_t i = 0; i < scales.size(); ++i) {
    RAPT_CHECK(std::isfinite(scales[i]) && scales[i] >= 0,
               "{}: expected numbers of at least 0, got {} at {}", scale.name, scales[i], i);
  }
  return scales;
}

}  // namespace

std::string scale_name(const std::string& matrix) { return matrix + ".scale"; }

bool holds_int8(const SafetensorsFile& file) {
  const auto tensors = file.tensors();
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorInfo& info) { return info.type == FileType::i8; });
}

bool same_contents(const SafetensorsFile& file, const TensorInfo& a, const TensorInfo& b) {
  const auto same = [&](const TensorInfo& x, const TensorInfo& y, DType type) {
    if (x.type != y.type || x.shape != y.shape) return false;
    const Tensor left = file.load(x, type), right = file.load(y, type);
    return std::memcmp(left.raw(), right.raw(),
                       static_cast<size_t>(left.numel() * size_of(type))) == 0;
  };
  if (a.type != FileType::i8) return same(a, b, DType::f32);
  return same(a, b, DType::i32) &&
         same(file.at(scale_name(a.name)), file.at(scale_name(b.name)), DType::f32);
}

void Int8Reader::read(const SafetensorsFile& file, const TensorInfo& info,
                      const std::vector<NamedParameter>& parts) {
  int64_t rows = 0;
  for (const NamedParameter& part : parts) rows += part.count;
  const int64_t in = parts.front().parameter.shape()[1];
  RAPT_CHECK(info.shape == std::vector<int64_t>({rows, in}), "{}: expected shape {}, got {}",
             info.name, Shape({rows, in}).text(), Shape(info.shape).text());
  std::vector<int8_t> values(static_cast<size_t>(rows * in));
  std::vector<float> scales(static_cast<size_t>(rows));
  if (info.type == FileType::i8) {
    scales = read_scales(file, info);
    const Tensor wide = file.load(info, DType::i32);
    std::transform(wide.data<int32_t>(), wide.data<int32_t>() + wide.numel(), values.begin(),
                   [](int32_t value) { return static_cast<int8_t>(value); });
  } else {
    quantise(file.load(info, DType::f32), values, scales);
  }
  int64_t row = 0;
  for (NamedParameter part : parts) {
    const Shape& shape = part.parameter.shape();
    Matrix& matrix = matrices_[part.parameter.id()];
    matrix.values.resize(static_cast<size_t>(shape.numel()));
    matrix.scales.resize(static_cast<size_t>(shape[0]));
    std::copy_n(values.begin() + row * in, part.count * in,
                matrix.values.begin() + part.begin * in);
    std::copy_n(scales.begin() + row, part.count, matrix.scales.begin() + part.begin);
    row += part.count;
    matrix.rows += part.count;
    if (matrix.rows < shape[0]) continue;
    part.parameter.set_int8(std::make_shared<Int8Matrix>(matrix.values, matrix.scales, in));
    matrices_.erase(part.parameter.id());
  }
}

std::vector<TensorSource> int8_sources(const EncoderDecoder& model, const Layout& layout) {
  std::map<std::string, Parameter> named;
  std::vector<std::string> order;
  for (const NamedParameter& p : nn::parameters(model)) {
    order.push_back(p.name);
    named.emplace(p.name, p.parameter);
  }
  std::map<std::string, Parameter> by_file;  // the first parameter of each tensor
  for (const LayoutEntry& entry : entries(layout, order))
    by_file.emplace(entry.file, named.at(entry.canonical.front()));
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] :
       by_file_name(model, layout, [](const NamedParameter& p) { return p.value(); })) {
    const Parameter& parameter = by_file.at(name);
    if (parameter.shape().rank() != 2) {
      sources.push_back(source_of(name, tensor));
      continue;
    }
    const auto values = std::make_shared<std::vector<int8_t>>(static_cast<size_t>(tensor.numel()));
    std::vector<float> scales(static_cast<size_t>(tensor.dim(0)));
    quantise(tensor, *values, scales);
    for (size_t i = 0; i < scales.size(); ++i) {
      RAPT_CHECK(std::isfinite(scales[i]), "{}: row {} has numbers that are not finite", name, i);
    }
    sources.push_back(
        {.name = name,
         .type = FileType::i8,
         .shape = {tensor.dim(0), tensor.dim(1)},
         .write = [values](const ByteSink& sink) { sink(std::as_bytes(std::span(*values))); }});
    sources.push_back(source_of(scale_name(name), Tensor::from(scales, {tensor.dim(0)})));
  }
  return sources;
}

}  // namespace rapt::models
