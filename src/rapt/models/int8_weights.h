// Weights in int8, as files hold them: a matrix NAME is a tensor of I8 (out, in), beside it
// NAME.scale of F32 (out), and weight = scale x value. Tables of embeddings are matrices, too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rapt/models/encoder_decoder.h"
#include "rapt/models/layout.h"
#include "rapt/models/safetensors.h"

namespace rapt::models {

std::string scale_name(const std::string& matrix);

bool holds_int8(const SafetensorsFile& file);  // in any of its tensors

// Whether two matrices of a file say the same.
bool same_contents(const SafetensorsFile& file, const TensorInfo& a, const TensorInfo& b);

// Reads matrices into parameters without values, which get an int8 matrix each.
class Int8Reader {
 public:
  // A tensor of the file, whose rows are those of `parts`: I8 with its scales, or any float type,
  // as f32 to be quantised. A parameter is done when all of its rows were read. Throws Error
  // (model) where the scales are missing, of another shape or not finite, and for another shape.
  void read(const SafetensorsFile& file, const TensorInfo& info,
            const std::vector<NamedParameter>& parts);

 private:
  struct Matrix {
    std::vector<int8_t> values;
    std::vector<float> scales;
    int64_t rows = 0;  // that were read
  };
  std::map<uint64_t, Matrix> matrices_;  // by parameter, those that are not done
};

// The tensors of a model with f32 weights as a folder in int8 holds them, named as `layout` says.
std::vector<TensorSource> int8_sources(const EncoderDecoder& model, const Layout& layout);

}  // namespace rapt::models
