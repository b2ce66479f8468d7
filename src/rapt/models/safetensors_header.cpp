#include "rapt/models/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/models/json.h"

namespace rapt::models {
namespace {

using nlohmann::json;

constexpr FileType kLastType = FileType::boolean;
constexpr size_t kMaxAxes = 16;
constexpr size_t kMaxName = 1024;

struct Type {
  std::string_view name;
  int64_t bytes;
};

constexpr Type kTypes[] = {{"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1},
                           {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},
                           {"U64", 8},     {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}};
static_assert(std::size(kTypes) == static_cast<size_t>(kLastType) + 1);

// Listens to the parser and keeps nothing but the list, so that no tree is ever built. Where a
// value does not belong, it keeps what is wrong and stops the parser.
class Listener : public nlohmann::json_sax<json> {
 public:
  Listener(SafetensorsHeader& header, const Limits& limits) : header_(header), limits_(limits) {}

  const std::string& wrong() const { return wrong_; }

  bool start_object(size_t) override {
    ++depth_;
    if (depth_ == 1) return true;
    if (depth_ > 2 || field_ != Field::none) return unexpected("an object");
    if (in_metadata_) return true;
    if (std::cmp_greater_equal(header_.tensors.size(), limits_.tensors)) {
      return refuse(fmt::format("more than {} tensors", limits_.tensors));
    }
    header_.tensors.emplace_back().name = std::move(name_);
    has_type_ = has_shape_ = has_range_ = false;
    return true;
  }

  bool end_object() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_ && !(has_type_ && has_shape_ && has_range_)) {
      return refuse(
          fmt::format("tensor {}: expected dtype, shape and data_offsets", tensor().name));
    }
    if (depth_ == 1) in_metadata_ = false;
    return true;
  }

  bool key(std::string& key) override {
    if (depth_ == 1) return outer_key(key);
    if (in_metadata_) {
      metadata_key_ = key;
      return header_.metadata.contains(key) ? refuse("duplicate metadata key " + short_name(key))
                                            : true;
    }
    field_ = key == "dtype"          ? Field::type
             : key == "shape"        ? Field::shape
             : key == "data_offsets" ? Field::range
                                     : Field::none;
    if (field_ == Field::none) {
      return refuse(fmt::format("tensor {}: unknown key {}", tensor().name, short_name(key)));
    }
    bool& has = field_ == Field::type    ? has_type_
                : field_ == Field::shape ? has_shape_
                                         : has_range_;
    if (has) return refuse(fmt::format("tensor {}: duplicate key {}", tensor().name, key));
    return true;
  }

  bool string(std::string& value) override {
    if (depth_ == 2 && in_metadata_) {
      header_.metadata[metadata_key_] = value;
      return true;
    }
    if (depth_ != 2 || field_ != Field::type || in_array_) return unexpected("a string");
    const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                           [&](const Type& type) { return type.name == value; });
    if (found == std::end(kTypes)) {
      return refuse(fmt::format("tensor {}: unknown type {}", tensor().name, short_name(value)));
    }
    tensor().type = static_cast<FileType>(found - kTypes);
    has_type_ = true;
    field_ = Field::none;
    return true;
  }

  bool start_array(size_t) override {
    if (in_array_ || depth_ != 2 || (field_ != Field::shape && field_ != Field::range)) {
      return unexpected("an array");
    }
    in_array_ = true;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    if (field_ == Field::shape) {
      tensor().shape = numbers_;
      has_shape_ = true;
    } else {
      if (numbers_.size() != 2) {
        return refuse(fmt::format("tensor {}: expected two data_offsets, got {}", tensor().name,
                                  numbers_.size()));
      }
      tensor().offset = numbers_[0];
      tensor().bytes = numbers_[1];  // the end, until the ranges are checked
      has_range_ = true;
    }
    field_ = Field::none;
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (!in_array_) return unexpected("a number");
    const bool is_shape = field_ == Field::shape;
    const int64_t limit = is_shape ? limits_.dimension : INT64_MAX;
    if (std::cmp_greater(value, limit)) {
      return refuse(fmt::format("tensor {}: {} is too large for {}", tensor().name, value,
                                is_shape ? "an axis" : "an offset"));
    }
    if (numbers_.size() >= kMaxAxes) {
      return refuse(fmt::format("tensor {}: more than {} numbers in {}", tensor().name, kMaxAxes,
                                is_shape ? "its shape" : "its data_offsets"));
    }
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a bool"); }
  bool number_integer(int64_t) override { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { return unexpected("a fraction"); }
  bool binary(json::binary_t&) override { return unexpected("binary data"); }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    return refuse(fmt::format("not JSON at byte {}", position));
  }

 private:
  enum class Field { none, type, shape, range };

  TensorInfo& tensor() { return header_.tensors.back(); }

  static std::string short_name(const std::string& text) {
    return text.size() > 80 ? text.substr(0, 80) + "..." : text;
  }

  bool refuse(std::string what) {
    wrong_ = std::move(what);
    return false;
  }

  bool unexpected(const char* what) {
    if (depth_ <= 1) return refuse(fmt::format("{} where a description was expected", what));
    if (in_metadata_) return refuse(fmt::format("__metadata__: {} where text was expected", what));
    return refuse(fmt::format("tensor {}: {} in the wrong place", tensor().name, what));
  }

  bool outer_key(std::string& key) {
    if (key == "__metadata__") {
      in_metadata_ = true;
      return std::exchange(had_metadata_, true) ? refuse("duplicate key __metadata__") : true;
    }
    if (key.empty()) return refuse("a tensor without a name");
    if (key.size() > kMaxName) return refuse("a tensor name of more than 1024 bytes");
    name_ = std::move(key);
    return true;
  }

  SafetensorsHeader& header_;
  const Limits& limits_;
  std::string wrong_, name_, metadata_key_;
  std::vector<int64_t> numbers_;
  int depth_ = 0;
  Field field_ = Field::none;
  bool in_array_ = false, in_metadata_ = false, had_metadata_ = false;
  bool has_type_ = false, has_shape_ = false, has_range_ = false;
};

// Shape, type and range of a tensor agree; sets numel, and bytes in place of the end.
void check_size(TensorInfo& tensor, const std::string& name) {
  const std::string who = fmt::format("{}: tensor {}", name, tensor.name);
  const int64_t end = tensor.bytes;
  if (end < tensor.offset) {
    fail(ErrorKind::model, "{}: its data ends at {}, before it begins at {}", who, end,
         tensor.offset);
  }
  with_error_kind(ErrorKind::model, "", [&] {
    tensor.numel = 1;
    for (const int64_t size : tensor.shape) {
      tensor.numel = checked_mul(tensor.numel, size, who.c_str());
    }
    tensor.bytes = checked_mul(tensor.numel, size_of(tensor.type), who.c_str());
  });
  if (tensor.bytes != end - tensor.offset) {
    fail(ErrorKind::model, "{}: its shape and type take {} bytes, its range holds {}", who,
         tensor.bytes, end - tensor.offset);
  }
}

// The ranges cover the data from its first byte to its last, each byte once.
void check_ranges(std::span<const TensorInfo> tensors, int64_t data_bytes,
                  const std::string& name) {
  int64_t covered = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset != covered) {
      fail(ErrorKind::model, "{}: tensor {} begins at byte {} of the data, expected {}: ranges {}",
           name, tensor.name, tensor.offset, covered,
           tensor.offset < covered ? "overlap" : "leave bytes out");
    }
    covered += tensor.bytes;  // at most the sum that the last range ends with
  }
  if (covered != data_bytes) {
    fail(ErrorKind::model, "{}: the header describes {} bytes of data, the file holds {}: it {}",
         name, covered, data_bytes,
         covered > data_bytes ? "was cut short" : "has bytes that belong to nothing");
  }
}

void check_names(std::span<const TensorInfo> tensors, const std::string& name) {
  std::vector<const std::string*> names;
  names.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) names.push_back(&tensor.name);
  std::sort(names.begin(), names.end(), [](auto* a, auto* b) { return *a < *b; });
  for (size_t i = 1; i < names.size(); ++i) {
    if (*names[i] == *names[i - 1]) {
      fail(ErrorKind::model, "{}: duplicate tensor name {}", name, *names[i]);
    }
  }
}

}  // namespace

std::string_view file_type_name(FileType type) { return kTypes[static_cast<size_t>(type)].name; }

int64_t size_of(FileType type) { return kTypes[static_cast<size_t>(type)].bytes; }

SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_begin,
                                           int64_t data_bytes, const std::string& name,
                                           const Limits& limits) {
  const JsonBounds bounds{.depth = limits.json_depth, .values = limits.header_bytes};
  check_json_bounds(text, bounds, name, ErrorKind::model);
  if (!text.starts_with('{')) fail(ErrorKind::model, "{}: the header is not a JSON object", name);
  SafetensorsHeader header;
  Listener listener(header, limits);
  if (!json::sax_parse(text, &listener)) {
    fail(ErrorKind::model, "{}: wrong header: {}", name, listener.wrong());
  }
  check_names(header.tensors, name);
  for (TensorInfo& tensor : header.tensors) check_size(tensor, name);
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) {
              return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
            });
  check_ranges(header.tensors, data_bytes, name);
  for (TensorInfo& tensor : header.tensors) tensor.offset += data_begin;
  return header;
}

}  // namespace rapt::models
