// Reading the numbers that PyTorch computed, and comparing with them. README.md in this folder says
// what there is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rapt/models/layout.h"
#include "rapt/models/safetensors.h"
#include "rapt/nn/module.h"
#include "tests/testing/testing.h"

namespace rapt::testing {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(RAPT_SOURCE_DIR) / "tests" / "golden";
}

// A stored file, or one case of it: the tensors whose names begin with "case.".
class Golden {
 public:
  explicit Golden(const std::filesystem::path& path)
      : file_(std::make_shared<models::SafetensorsFile>(golden_folder() / path)) {}

  Golden at(const std::string& name) const {
    Golden part = *this;
    part.prefix_ += name + ".";
    return part;
  }
  bool has(const std::string& name) const { return file_->find(prefix_ + name) != nullptr; }

  size_t count() const { return file_->tensors().size(); }  // of the whole file

  Tensor floats(const std::string& name, DType dtype = DType::f64) const {
    return load(name, dtype);
  }
  Tensor ids(const std::string& name) const { return load(name, DType::i32); }
  Tensor mask(const std::string& name) const { return load(name, DType::boolean); }
  double number(const std::string& name) const { return floats(name).item(); }
  int64_t whole_number(const std::string& name) const {
    return load(name, DType::i64).to_vector<int64_t>().at(0);
  }

 private:
  Tensor load(const std::string& name, DType dtype) const {
    return file_->load(file_->at(prefix_ + name), dtype);
  }

  std::shared_ptr<models::SafetensorsFile> file_;
  std::string prefix_;
};

inline double largest(const Tensor& x) {
  double size = 0;
  for (const double value : x.to(DType::f64).to_vector<double>())
    size = std::max(size, std::abs(value));
  return size;
}

// Every element of `got` within tolerance times the largest of `wanted`, or times `floor` where
// that is larger: for tensors that are zero but for rounding.
inline void expect_agrees(const Tensor& got, const Tensor& wanted, double tolerance,
                          const std::string& what, double floor = 0) {
  ASSERT_EQ(got.numel(), wanted.numel()) << what;
  const std::vector<double> a = got.to(DType::f64).to_vector<double>();
  const std::vector<double> b = wanted.to(DType::f64).to_vector<double>();
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    difference = std::isfinite(d) ? std::max(difference, d) : INFINITY;
  }
  EXPECT_LE(difference, tolerance * std::max(largest(wanted), floor)) << what;
}

// The parameters of a module under the names of a layout's files: one tensor there is made of one
// or more parameters here, stacked.
class NamesInFile {
 public:
  // `prefix` is the module's place in the whole model ("encoder.layers.0"), `strip` what its names
  // in the layout begin with ("transformer.encoder.layers.0.").
  NamesInFile(const nn::Module& module, const std::string& layout, const std::string& prefix = "",
              const std::string& strip = "") {
    std::vector<std::string> names;
    std::vector<NamedParameter> parameters;
    module.visit(
        [&](const NamedParameter& parameter) {
          names.push_back(parameter.name);
          parameters.push_back(parameter);
        },
        prefix);
    for (const models::LayoutEntry& entry : models::entries(models::layout(layout), names)) {
      if (!entry.file.starts_with(strip)) throw Error(entry.file + " does not begin with " + strip);
      entries_.push_back({entry.file.substr(strip.size()), {}});
      for (const std::string& name : entry.canonical) {
        const auto found = std::find(names.begin(), names.end(), name);
        entries_.back().parts.push_back(parameters.at(static_cast<size_t>(found - names.begin())));
      }
    }
  }

  // Gives every parameter its stored value, tensor "param.NAME" or as `name_of` says.
  void load(const Golden& from, const std::string& before = "param.") const {
    for (const Entry& entry : entries_) {
      const Parameter& first = entry.parts.front().parameter;
      const Tensor stored = from.floats(before + entry.name, first.value().dtype());
      int64_t row = 0;
      for (const NamedParameter& part : entry.parts) {
        Tensor to = part.value();
        const Tensor values = stored.rows(row, part.count);
        std::memcpy(to.raw(), values.raw(), static_cast<size_t>(to.numel() * size_of(to.dtype())));
        row += part.count;
      }
    }
  }

  // Calls f(name in the file, gradient in the file's shape) for every tensor.
  void each_gradient(Gradients& gradients,
                     const std::function<void(const std::string&, const Tensor&)>& f) const {
    for (const Entry& entry : entries_) {
      std::vector<double> values;
      for (const NamedParameter& part : entry.parts) {
        const Tensor whole = gradients.of(part.parameter);
        ASSERT_TRUE(whole.defined()) << part.name << " received no gradient";
        const std::vector<double> rows =
            whole.rows(part.begin, part.count).to(DType::f64).to_vector<double>();
        values.insert(values.end(), rows.begin(), rows.end());
      }
      f(entry.name, Tensor::from(values, {static_cast<int64_t>(values.size())}));
    }
  }

 private:
  struct Entry {
    std::string name;
    std::vector<NamedParameter> parts;
  };
  std::vector<Entry> entries_;
};

}  // namespace rapt::testing
