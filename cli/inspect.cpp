// rapt inspect: what is in a model folder or a safetensors file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/program.h"
#include "rapt/base/file.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/safetensors.h"
#include "rapt/tensor/shape.h"

namespace rapt::cli {
namespace {

struct Options {
  std::string path;
  bool json = false;
};

int inspect(const Options& options) {
  const std::filesystem::path path = options.path;
  const bool folder = std::filesystem::is_directory(path);
  std::optional<models::EncoderDecoderConfig> config;
  if (folder) config = models::read_config(path);
  const models::SafetensorsFile file(folder ? path / models::kWeightsFile : path);
  int64_t elements = 0, bytes = 0;
  for (const models::TensorInfo& tensor : file.tensors()) {
    elements += tensor.numel;
    bytes += tensor.bytes;
  }
  // A tied parameter stands in the file under each of its names, buffers stand there too; the model
  // counts each once.
  std::optional<int64_t> parameters;
  if (config) parameters = config->count_parameters();
  if (options.json) {
    nlohmann::ordered_json j;
    if (config) j["config"] = nlohmann::ordered_json::parse(models::config_text(*config));
    j["tensors"] = nlohmann::ordered_json::array();
    for (const models::TensorInfo& tensor : file.tensors()) {
      j["tensors"].push_back({{"name", tensor.name},
                              {"dtype", models::file_type_name(tensor.type)},
                              {"shape", tensor.shape}});
    }
    j["elements"] = elements;
    j["bytes"] = bytes;
    if (parameters) j["parameters"] = *parameters;
    print(fmt::format("{}\n", j.dump(2)));
    return 0;
  }
  if (config) print(fmt::format("{}\n", models::config_text(*config)));
  size_t width = 4;
  for (const models::TensorInfo& tensor : file.tensors())
    width = std::max(width, tensor.name.size());
  for (const models::TensorInfo& tensor : file.tensors()) {
    print(fmt::format("{:<{}}  {:<5} ({})\n", tensor.name, width,
                      models::file_type_name(tensor.type), fmt::join(tensor.shape, ", ")));
  }
  print(fmt::format("\n{} tensors, {} elements, {:.1f} MiB\n", file.tensors().size(), elements,
                    static_cast<double>(bytes) / 0x1p20));
  if (parameters)
    print(fmt::format("{} parameters (tied ones once, without buffers)\n", *parameters));
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Globals&, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "inspect", "Show a model folder's configuration and tensors, or those of a safetensors file");
  verb->add_option("path", options->path, "A model folder or a .safetensors file")
      ->type_name("PATH")
      ->required();
  verb->add_flag("--json", options->json, "As JSON");
  verb->footer("Example:\n  rapt inspect demo/model --json");
  verb->callback([options, &action] { action = [options] { return inspect(*options); }; });
}

}  // namespace rapt::cli
