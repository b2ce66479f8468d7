// The stored cases of tests/parity: each official module against PyTorch's numbers, in f64 and f32.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "rapt/models/safetensors.h"
#include "rapt/models/torch_kinds.h"
#include "rapt/models/torch_module.h"
#include "tests/testing/testing.h"

namespace rapt::models {
namespace {

using nlohmann::json;

std::filesystem::path fixtures() {
  return std::filesystem::path(RAPT_SOURCE_DIR) / "tests" / "parity" / "fixtures";
}

const json& cases() {
  static const json all = json::parse(std::ifstream(fixtures() / "cases.json"));
  return all;
}

// One stored case: its folder written, its inputs and what PyTorch gives for them.
class Case {
 public:
  explicit Case(const json& entry)
      : entry_(entry), file_(fixtures() / (entry.at("name").get<std::string>() + ".safetensors")) {
    std::vector<TensorSource> weights;
    for (const TensorInfo& info : file_.tensors()) {
      if (info.name.starts_with("model."))
        weights.push_back(source_of(info.name.substr(6), file_.load(info, DType::f32)));
    }
    std::ofstream(folder_.path() / "config.json") << entry.at("config").dump();
    if (!weights.empty()) write_safetensors(folder_.path() / "model.safetensors", weights);
  }

  NamedTensors inputs(DType dtype) const { return part("in.", dtype); }
  NamedTensors wanted() const { return part("out.", DType::f64); }

  NamedTensors run(DType dtype) const {
    const TorchModule module = TorchModule::load(folder_.path(), dtype);
    return module.run(inputs(dtype), entry_.at("args").dump(),
                      {.gradients = true, .training = entry_.at("train").get<bool>(), .seed = 1});
  }

 private:
  NamedTensors part(const std::string& before, DType dtype) const {
    NamedTensors tensors;
    for (const TensorInfo& info : file_.tensors()) {
      if (!info.name.starts_with(before)) continue;
      const DType type = info.type == FileType::boolean ? DType::boolean : dtype;
      tensors.emplace_back(info.name.substr(before.size()), file_.load(info, type));
    }
    return tensors;
  }

  json entry_;
  SafetensorsFile file_;
  testing::TemporaryFolder folder_;
};

// Element by element: within `absolute`, or `relative` of the value.
void expect_numbers(const NamedTensors& ours, const NamedTensors& wanted, double absolute,
                    double relative) {
  std::map<std::string, Tensor> by_name(ours.begin(), ours.end());
  EXPECT_EQ(by_name.size(), wanted.size());
  for (const auto& [name, b] : wanted) {
    ASSERT_TRUE(by_name.contains(name)) << name;
    const Tensor& a = by_name.at(name);
    ASSERT_EQ(a.shape(), b.shape()) << name;
    const std::vector<double> x = a.to(DType::f64).to_vector<double>();
    const std::vector<double> y = b.to_vector<double>();
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double part = std::abs(x[i] - y[i]) / std::max(absolute, relative * std::abs(y[i]));
      worst = std::isfinite(part) ? std::max(worst, part) : INFINITY;
    }
    EXPECT_LE(worst, 1) << name;
  }
}

class TorchFixtures : public ::testing::TestWithParam<size_t> {
 protected:
  const json& entry() const { return cases().at(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Cases, TorchFixtures, ::testing::Range(size_t{0}, cases().size()),
                         [](const auto& of) {
                           std::string name = cases().at(of.param).at("name");
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

TEST_P(TorchFixtures, NumbersInF64AreThoseOfPyTorch) {
  const Case stored(entry());
  expect_numbers(stored.run(DType::f64), stored.wanted(), 1e-10, 1e-10);
}

TEST_P(TorchFixtures, NumbersInF32AreThoseOfPyTorch) {
  const Case stored(entry());
  expect_numbers(stored.run(DType::f32), stored.wanted(), 2e-5, 1e-4);
}

// Whether a case has an argument on: given, and not at the value that changes nothing.
bool is_on(std::string_view model_type, const json& arguments, const std::string& name) {
  static const json defaults = {
      {"bias", true},       {"need_weights", true},   {"enable_nested_tensor", true},
      {"mask_check", true}, {"layer_norm_eps", 1e-5}, {"activation", "relu"}};
  if (!arguments.contains(name)) return false;
  const json& value = arguments.at(name);
  if (value.is_null() || (value.is_number() && value == 0)) return false;
  if (name == "average_attn_weights" && model_type == "torch.nn.MultiheadAttention")
    return !value.get<bool>();
  return value != (defaults.contains(name) ? defaults.at(name) : json(false));
}

// Sizes are there always, modules of one's own cannot stand in JSON, dropout cannot be compared.
const std::set<std::string_view> kNotCounted = {"embed_dim",
                                                "num_heads",
                                                "d_model",
                                                "nhead",
                                                "dim_feedforward",
                                                "num_layers",
                                                "num_encoder_layers",
                                                "num_decoder_layers",
                                                "custom_encoder",
                                                "custom_decoder",
                                                "dropout_p"};

TEST(TorchFixtures, ShowEveryArgumentOfEveryModuleOnAndOff) {
  EXPECT_GE(cases().size(), 60u);
  for (const TorchEntry& module : torch_entries()) {
    std::map<std::string, std::set<bool>> seen;
    for (const json& entry : cases()) {
      if (entry.at("config").at("model_type") != module.model_type) continue;
      const auto count = [&](const std::vector<std::string_view>& names, const json& arguments) {
        for (const std::string_view name : names)
          seen[std::string(name)].insert(is_on(module.model_type, arguments, std::string(name)));
      };
      count(module.constructor, entry.at("config"));
      count(module.arguments, entry.at("args"));
      const NamedTensors inputs = Case(entry).inputs(DType::f32);
      for (const std::string_view name : module.optional) {
        seen[std::string(name)].insert(std::any_of(inputs.begin(), inputs.end(),
                                                   [&](const auto& x) { return x.first == name; }));
      }
    }
    for (const auto& [name, values] : seen) {
      if (kNotCounted.contains(name)) continue;
      EXPECT_EQ(values.size(), 2u) << module.model_type << " " << name;
    }
  }
}

}  // namespace
}  // namespace rapt::models
