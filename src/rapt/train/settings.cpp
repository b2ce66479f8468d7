// What must not change when a run goes on.
#include <fmt/format.h>

#include <set>

#include "rapt/base/check.h"
#include "rapt/base/checksum.h"
#include "rapt/train/run.h"

namespace rapt::train {
namespace {

std::string name_of(Rule rule) {
  return rule == Rule::adamw ? "adamw" : rule == Rule::adam ? "adam" : "sgd";
}

std::string name_of(optim::Decay decay) {
  switch (decay) {
    case optim::Decay::constant:
      return "constant";
    case optim::Decay::inverse_sqrt:
      return "inverse_sqrt";
    case optim::Decay::linear:
      return "linear";
    case optim::Decay::cosine:
      return "cosine";
    case optim::Decay::step:
      return "step";
  }
  fail(ErrorKind::failure, "settings: unknown schedule");
}

}  // namespace

std::map<std::string, std::string> settings_of(const Recipe& recipe, const RunOptions& options) {
  std::map<std::string, std::string> all;
  const auto put = [&](const char* name, const auto& value) {
    all[name] = fmt::format("{}", value);
  };
  const models::EncoderDecoderConfig& model = recipe.model;
  put("d-model", model.d_model);
  put("nhead", model.nhead);
  put("dim-feedforward", model.dim_feedforward);
  put("layers", fmt::format("{}+{}", model.num_encoder_layers, model.num_decoder_layers));
  put("max-len", model.max_len);
  put("dropout", model.dropout);
  const auto put_share = [&](const char* name, std::optional<double> share) {
    all[name] = share.value_or(model.dropout) == model.dropout ? "that of --dropout"
                                                               : fmt::format("{}", *share);
  };
  put_share("attention-dropout", model.attention_dropout);
  put_share("activation-dropout", model.activation_dropout);
  put_share("embedding-dropout", model.position_dropout);
  put("tie-embeddings", models::name_of(model.tie_embeddings));
  put("norm-first", model.norm_first);
  put("min-count", recipe.words.min_count);
  put("optimizer", name_of(recipe.rule));
  put("beta1", recipe.adam.beta1);
  put("beta2", recipe.adam.beta2);
  put("epsilon", recipe.adam.epsilon);
  put("momentum", recipe.momentum);
  put("weight-decay", recipe.adam.common.weight_decay);
  put("max-norm", recipe.adam.common.max_norm);
  put("schedule", name_of(recipe.schedule.decay));
  put("learning-rate", recipe.schedule.rate);
  put("final-rate", recipe.schedule.final_rate);
  put("warmup", recipe.schedule.warmup);
  put("decay-steps", recipe.schedule.total);
  put("batch-tokens", recipe.fit.batches.tokens);
  put("accumulate", recipe.fit.accumulate);
  put("label-smoothing", recipe.fit.label_smoothing);
  put("seed", recipe.fit.seed);
  put("dtype", recipe.fit.compute_type == DType::bf16 ? "bf16" : "f32");
  put("save-every", options.save_every);
  put("average", options.average);
  put("ema", options.ema);
  put("valid-metric", train::name_of(options.metric));
  put("valid-every", options.valid_every);
  return all;
}

std::map<std::string, DataFile> data_files(const std::map<std::string, std::string>& paths) {
  std::map<std::string, DataFile> files;
  for (const auto& entry : paths) {
    const std::string& path = entry.second;
    files[entry.first] = with_error_kind(ErrorKind::data, "", [&] {
      std::error_code ignored;
      const auto bytes = std::filesystem::file_size(path, ignored);
      return DataFile{
          .path = path, .checksum = file_checksum(path), .bytes = static_cast<int64_t>(bytes)};
    });
  }
  return files;
}

void expect_same_settings(const RunState& begun, const std::map<std::string, std::string>& now) {
  std::set<std::string> names;
  for (const auto& [name, value] : begun.settings) names.insert(name);
  for (const auto& [name, value] : now) names.insert(name);
  const auto value_in = [](const std::map<std::string, std::string>& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? "nothing" : found->second;
  };
  for (const std::string& name : names) {
    const std::string before = value_in(begun.settings, name), after = value_in(now, name);
    if (before != after)
      fail(ErrorKind::config,
           "--{}: the run was begun with {}, got {}; go on with what it was, or begin another run",
           name, before, after);
  }
}

void expect_same_files(const RunState& begun, const std::map<std::string, DataFile>& now) {
  std::set<std::string> flags;
  for (const auto& [flag, file] : begun.files) flags.insert(flag);
  for (const auto& [flag, file] : now) flags.insert(flag);
  for (const std::string& flag : flags) {
    if (!begun.files.contains(flag) || !now.contains(flag))
      fail(ErrorKind::config, "{}: the run was begun {} it; go on as it was begun", flag,
           begun.files.contains(flag) ? "with" : "without");
    const DataFile &before = begun.files.at(flag), &after = now.at(flag);
    if (before.checksum != after.checksum || before.bytes != after.bytes)
      fail(ErrorKind::data,
           "{}: the file has changed since the run began with {} ({} bytes, checksum {}; then {} "
           "bytes, {}); bring it back, or begin another run",
           after.path, before.path, after.bytes, after.checksum, before.bytes, before.checksum);
  }
}

}  // namespace rapt::train
