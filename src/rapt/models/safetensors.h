// Safetensors files: a JSON header with the name, type, shape and place of each tensor, then the
// data.
//
//   8 bytes   n, the length of the header (little endian)
//   n bytes   {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3],
//             "data_offsets": [0, 24]}, ...}; offsets count from the end of the header
//   the rest  the tensors' elements, little endian, row-major; the ranges cover every byte once
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/base/limits.h"
#include "rapt/tensor/tensor.h"

namespace rapt::models {

// The element types of the format. F8_E4M3 and F8_E5M2 can be listed, not converted.
enum class FileType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
};

std::string_view file_type_name(FileType type);  // "F32", as files spell it
int64_t size_of(FileType type);                  // bytes of one element
FileType file_type(DType dtype);                 // the type that holds a tensor of `dtype` exactly

struct TensorInfo {
  std::string name;
  FileType type = FileType::f32;
  std::vector<int64_t> shape;
  int64_t numel = 0;
  int64_t offset = 0;  // of the first byte, in the file
  int64_t bytes = 0;
};

using Metadata = std::map<std::string, std::string>;

// A file opened for reading. Opening reads and checks the header alone; read() fetches one tensor's
// bytes in pieces, so that memory never grows by the file's size, and a file that another process
// shortens meanwhile is an Error. Any number of threads may read at once.
class SafetensorsFile {
 public:
  // Throws Error (model): a missing file, a header that is too long, out of bounds or not JSON, a
  // tensor named twice, an unknown type, shape, type and byte range that do not agree, ranges that
  // overlap or leave bytes out, a file that is shorter or longer than its header says.
  explicit SafetensorsFile(const std::filesystem::path& path, const Limits& limits = {});
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  // The tensors in the order of their data.
  std::span<const TensorInfo> tensors() const;
  const Metadata& metadata() const;

  const TensorInfo* find(std::string_view name) const;  // nullptr where there is none
  const TensorInfo& at(std::string_view name) const;    // throws Error (model) where there is none

  // The elements of a tensor, converted to T: any float type to float, double and bf16 (rounded to
  // nearest even), any integer type to int32_t and int64_t, BOOL to uint8_t. Throws Error (model)
  // for other conversions, integers that do not fit, bools other than 0 and 1, a failed read; Error
  // for a span of another size.
  template <class T>
  void read(const TensorInfo& info, std::span<T> out) const {
    read_into(info, out.data(), static_cast<int64_t>(out.size()), DTypeOf<T>::value);
  }

  // The same as a tensor of its own. Throws Error (model) for more axes than a Tensor has.
  Tensor load(const TensorInfo& info, DType dtype) const;

 private:
  void read_into(const TensorInfo& info, void* out, int64_t count, DType dtype) const;

  struct State;
  std::unique_ptr<State> state_;
};

// A tensor to write: what it is, and a function that passes its bytes on in order, in any pieces.
using ByteSink = std::function<void(std::span<const std::byte>)>;
struct TensorSource {
  std::string name;
  FileType type = FileType::f32;
  std::vector<int64_t> shape;
  std::function<void(const ByteSink&)> write;
};

// The elements of a tensor, views of columns included; the tensor's memory is kept until written.
TensorSource source_of(std::string name, const Tensor& tensor);

// Writes a file with the tensors in the given order, whole or not at all; the data begins at a
// multiple of eight bytes. Throws Error for names that are empty, repeated, "__metadata__" or not
// UTF-8, for sources that give another number of bytes than their shape says, and as AtomicFile
// does.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                       const Metadata& metadata = {});

}  // namespace rapt::models
