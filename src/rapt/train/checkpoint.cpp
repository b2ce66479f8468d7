#include "rapt/train/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "rapt/base/check.h"
#include "rapt/base/checksum.h"
#include "rapt/base/file.h"
#include "rapt/base/replace.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/json.h"

namespace rapt::train {
namespace {

namespace fs = std::filesystem;
using models::JsonObject;
using nlohmann::ordered_json;
using optim::StateTensor;

constexpr const char *kStateFile = "training.json", *kTensorFile = "training.safetensors";
constexpr std::string_view kStep = "step-";
constexpr int64_t kFormat = 1;
constexpr int64_t kMost = int64_t{1} << 53;  // what JSON numbers hold exactly

// The names in a folder; none where it is missing.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entry(folder, problem), end;
  for (; !problem && entry != end; entry.increment(problem))
    names.push_back(entry->path().filename().string());
  return names;
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw()),
          static_cast<size_t>(tensor.numel() * size_of(tensor.dtype()))};
}

std::string checksum_of(const Tensor& tensor) {
  Checksum sum;
  sum.add(bytes_of(tensor.contiguous() ? tensor : tensor.contiguous_copy()));
  return sum.text();
}

// What training.safetensors holds.
std::vector<StateTensor> state_tensors(const optim::Optimizer& optimizer, bool with_weights,
                                       const optim::MovingAverage* average) {
  std::vector<StateTensor> all;
  for (const StateTensor& s : optimizer.state()) all.push_back({"optimizer." + s.name, s.value});
  if (average != nullptr) all.push_back({"average.updates", average->state().front().value});
  if (with_weights) {
    for (const NamedParameter& p : optimizer.parameters())
      all.push_back({"weights." + p.name, p.value()});
  }
  return all;
}

// The checksums of the tensors of model.safetensors, by their names there.
ordered_json model_checksums(const models::EncoderDecoder& model) {
  const models::Layout& layout = models::layout(model.config().layout);
  ordered_json sums = ordered_json::object();
  for (const auto& [name, value] :
       models::by_file_name(model, layout, [](const NamedParameter& p) { return p.value(); }))
    sums[name] = checksum_of(value);
  for (const std::string_view name : layout.positions)
    sums[std::string(name)] = checksum_of(model.positions());
  return sums;
}

ordered_json json_of(const RunState& state) {
  const Place& place = state.place;
  ordered_json files = ordered_json::object();
  for (const auto& [flag, file] : state.files)
    files[flag] = {{"path", file.path}, {"bytes", file.bytes}, {"xxh64", file.checksum}};
  return {{"format", kFormat},
          {"step", place.step},
          {"epoch", place.epoch},
          {"batch", place.batch},
          {"tokens", place.tokens},
          {"epoch_sum", place.epoch_sum},
          {"epoch_tokens", place.epoch_tokens},
          {"seconds", place.seconds},
          {"skipped", place.skipped},
          {"skipped_in_a_row", place.skipped_in_a_row},
          {"best_step", state.best.step},
          {"best_score", state.best.score},
          {"worse_since", state.best.worse_since},
          {"validated", state.best.validated},
          {"log_sum", state.log.loss_sum},
          {"log_tokens", state.log.tokens},
          {"regular", state.regular},
          {"settings", state.settings},
          {"files", files},
          {"arguments", state.arguments}};
}

void write_tensors(const fs::path& path, const std::vector<StateTensor>& tensors,
                   ordered_json& sums) {
  std::vector<models::TensorSource> sources;
  for (const StateTensor& tensor : tensors) {
    sources.push_back(models::source_of(tensor.name, tensor.value));
    sums[tensor.name] = checksum_of(tensor.value);
  }
  models::write_safetensors(path, sources);
}

DType dtype_of(models::FileType type, const std::string& where) {
  switch (type) {
    case models::FileType::f32:
      return DType::f32;
    case models::FileType::f64:
      return DType::f64;
    case models::FileType::i64:
      return DType::i64;
    default:
      fail(ErrorKind::model, "{}: expected F32, F64 or I64, got {}", where,
           models::file_type_name(type));
  }
}

Tensor load(const models::SafetensorsFile& file, const models::TensorInfo& info) {
  return file.load(info, dtype_of(info.type, info.name));
}

void verify_file(const fs::path& path, const JsonObject& sums) {
  const models::SafetensorsFile file(path);
  for (const std::string& name : sums.keys()) {
    const models::TensorInfo* info = file.find(name);
    if (info == nullptr)
      fail(ErrorKind::model, "{}: expected a tensor {}, there is none", path.string(), name);
    const std::string found = checksum_of(load(file, *info));
    if (found != sums.text(name))
      fail(ErrorKind::model, "{}: tensor {} is damaged: expected the checksum {}, got {}",
           path.string(), name, sums.text(name), found);
  }
  if (std::cmp_not_equal(file.tensors().size(), sums.keys().size()))
    fail(ErrorKind::model, "{}: expected {} tensors, got {}", path.string(), sums.keys().size(),
         file.tensors().size());
}

JsonObject read_state_file(const fs::path& checkpoint) {
  JsonObject state = JsonObject::read(checkpoint / kStateFile);
  state.integer("format", kFormat, kFormat);
  return state;
}

}  // namespace

fs::path Checkpoints::path_of(int64_t step) const {
  return folder_ / fmt::format("{}{:09}", kStep, step);
}

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(folder_)) {
    const std::string digits = name.starts_with(kStep) ? name.substr(kStep.size()) : "";
    if (digits.empty() || digits.size() > 18 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    steps.push_back(std::stoll(digits));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void Checkpoints::write(const decode::Translator& translator, const optim::Optimizer& optimizer,
                        optim::MovingAverage* average, const RunState& state) const {
  const fs::path path = path_of(state.place.step);
  write_folder(path, [&](const fs::path& temporary) {
    ordered_json sums = {{models::kWeightsFile, {}}, {kTensorFile, ordered_json::object()}};
    write_tensors(temporary / kTensorFile, state_tensors(optimizer, average != nullptr, average),
                  sums[kTensorFile]);
    {
      const optim::Averaged averaged(average);
      decode::write_translator(translator, temporary);
      sums[models::kWeightsFile] = model_checksums(*translator.model);
    }
    ordered_json all = json_of(state);
    all["checksums"] = sums;
    write_file(temporary / kStateFile, all.dump(1) + "\n");
  });
  verify_checkpoint(path);
}

void Checkpoints::keep_only(const std::vector<int64_t>& wanted) const {
  for (const int64_t step : steps()) {
    if (std::find(wanted.begin(), wanted.end(), step) == wanted.end()) remove_folder(path_of(step));
  }
}

void Checkpoints::clear_leftovers() const {
  for (const std::string& name : names_in(folder_)) {
    if (name.ends_with(".tmp")) rapt::clear_leftovers(folder_ / name.substr(0, name.find('.')));
  }
}

int64_t Checkpoints::finished() const {
  std::error_code ignored;
  const fs::path path = folder_ / kFinishedFile;
  if (!fs::exists(path, ignored)) return 0;
  const std::string text = read_file(path, 100);
  const auto digits = text.find_first_not_of("0123456789");
  return digits == 0 || digits > 18 ? 0 : std::stoll(text);
}

RunState read_run_state(const fs::path& checkpoint) {
  const JsonObject json = read_state_file(checkpoint);
  const auto count = [&](const char* key) { return json.integer(key, 0, kMost); };
  const auto number = [&](const char* key) {
    return json.number(key, std::numeric_limits<double>::lowest(),
                       std::numeric_limits<double>::max());
  };
  RunState state;
  state.place = {.epoch = json.integer("epoch", 1, kMost),
                 .batch = count("batch"),
                 .step = count("step"),
                 .tokens = count("tokens"),
                 .epoch_sum = number("epoch_sum"),
                 .epoch_tokens = count("epoch_tokens"),
                 .seconds = number("seconds"),
                 .skipped = count("skipped"),
                 .skipped_in_a_row = count("skipped_in_a_row")};
  state.best = {.step = count("best_step"),
                .score = number("best_score"),
                .worse_since = count("worse_since"),
                .validated = count("validated")};
  state.log = {.loss_sum = number("log_sum"), .tokens = count("log_tokens")};
  state.regular = json.boolean("regular");
  const JsonObject settings = json.object("settings"), files = json.object("files");
  for (const std::string& key : settings.keys()) state.settings[key] = settings.text(key);
  for (const std::string& key : files.keys()) {
    const JsonObject file = files.object(key);
    state.files[key] = {.path = file.text("path"),
                        .checksum = file.text("xxh64"),
                        .bytes = file.integer("bytes", 0, kMost)};
  }
  state.arguments = json.text("arguments");
  return state;
}

void verify_checkpoint(const fs::path& checkpoint) {
  const JsonObject sums = read_state_file(checkpoint).object("checksums");
  for (const char* file : {models::kWeightsFile, kTensorFile})
    verify_file(checkpoint / file, sums.object(file));
}

void load_training_state(const fs::path& checkpoint, optim::Optimizer& optimizer,
                         optim::MovingAverage* average) {
  const fs::path path = checkpoint / kTensorFile;
  const models::SafetensorsFile file(path);
  std::vector<StateTensor> of_optimizer, of_average;
  std::map<std::string, Tensor> weights;
  for (const models::TensorInfo& info : file.tensors()) {
    const size_t dot = info.name.find('.');
    const std::string group = info.name.substr(0, dot);
    const std::string name = dot == std::string::npos ? "" : info.name.substr(dot + 1);
    if (group == "optimizer") of_optimizer.push_back({name, load(file, info)});
    if (group == "average") of_average.push_back({name, load(file, info)});
    if (group == "weights") weights[name] = load(file, info);
  }
  with_error_kind(ErrorKind::model, path.string(), [&] {
    optimizer.load_state(of_optimizer);
    if (average == nullptr) return;
    // The model was loaded with the average for weights.
    for (const NamedParameter& p : optimizer.parameters()) {
      of_average.push_back({p.name, p.value().contiguous_copy()});
      const Tensor& weight = weights[p.name];
      RAPT_CHECK(weight.defined() && weight.shape() == p.value().shape() &&
                     weight.dtype() == p.value().dtype(),
                 "expected a tensor weights.{} of {}", p.name, p.value().shape().text());
    }
    average->load_state(of_average);
    for (const NamedParameter& p : optimizer.parameters()) {
      Tensor value = p.value();
      const auto saved = bytes_of(weights[p.name]);
      std::memcpy(value.raw(), saved.data(), saved.size());
    }
  });
}

}  // namespace rapt::train
