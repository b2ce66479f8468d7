#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/base/file.h"
#include "rapt/models/safetensors.h"

namespace rapt::models {
namespace {

using nlohmann::json;

int64_t bytes_of(const TensorSource& tensor) {
  int64_t bytes = size_of(tensor.type);
  for (const int64_t size : tensor.shape) {
    RAPT_CHECK(size >= 0, "safetensors: tensor {}: expected sizes of at least 0, got {}",
               tensor.name, size);
    bytes = checked_mul(bytes, size, "safetensors");
  }
  return bytes;
}

// A text as JSON writes it, in quotes.
std::string json_text(std::string_view text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    fail(ErrorKind::failure, "safetensors: a name or a metadata text is not UTF-8");
  }
}

// The header as text, with spaces behind it so that the data begins at a multiple of eight bytes.
std::string header_of(std::span<const TensorSource> tensors, const Metadata& metadata) {
  std::vector<std::string> entries;
  if (!metadata.empty()) {
    std::vector<std::string> texts;
    for (const auto& [key, text] : metadata)
      texts.push_back(json_text(key) + ":" + json_text(text));
    entries.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(texts, ",")));
  }
  std::set<std::string_view> names;
  int64_t begin = 0;
  for (const TensorSource& tensor : tensors) {
    RAPT_CHECK(
        !tensor.name.empty() && tensor.name != "__metadata__" && names.insert(tensor.name).second,
        "safetensors: expected names that are not empty, not __metadata__ and not repeated, got "
        "'{}'",
        tensor.name);
    const int64_t end = checked_add(begin, bytes_of(tensor), "safetensors");
    entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json_text(tensor.name), file_type_name(tensor.type),
                                  fmt::join(tensor.shape, ","), begin, end));
    begin = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(entries, ","));
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

TensorSource source_of(std::string name, const Tensor& tensor) {
  const auto sizes = tensor.shape().sizes();
  return {std::move(name),
          file_type(tensor.dtype()),
          {sizes.begin(), sizes.end()},
          [tensor](const ByteSink& sink) {
            if (tensor.numel() == 0) return;
            const int64_t width = rapt::size_of(tensor.dtype());
            const auto* data = static_cast<const std::byte*>(tensor.raw());
            const int64_t rows = tensor.contiguous() ? 1 : tensor.dim(0);
            const auto row_bytes = static_cast<size_t>(tensor.numel() / rows * width);
            for (int64_t row = 0; row < rows; ++row) {
              sink({data + row * tensor.row_stride() * width, row_bytes});
            }
          }};
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                       const Metadata& metadata) {
  const std::string header = header_of(tensors, metadata);
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const TensorSource& tensor : tensors) {
    int64_t written = 0;
    tensor.write([&](std::span<const std::byte> bytes) {
      written += static_cast<int64_t>(bytes.size());
      file.write(bytes);
    });
    RAPT_CHECK(written == bytes_of(tensor),
               "safetensors: tensor {}: expected {} bytes from its source, got {}", tensor.name,
               bytes_of(tensor), written);
  }
  file.commit();
}

}  // namespace rapt::models
