// What the flags of rapt train say.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "rapt/base/error.h"
#include "rapt/train/run.h"

namespace rapt::cli {

struct TrainOptions {
  data::PairFiles files;
  std::vector<std::string> configs;  // YAML files, the later ones win
  std::vector<std::string> sets;     // "key=value"

  std::string out, columns = "1,2";
  int64_t subwords = 0;  // pieces of a joint model learnt from the text; 0: words
  std::string source_tokenizer, target_tokenizer;
  std::string invalid_utf8 = "strict";

  data::PairFiles valid_files;  // none: no validation
  std::string valid_metric = "loss";

  train::Recipe recipe = train::small_recipe();
  int64_t layers = recipe.model.num_encoder_layers;
  double dropout = recipe.model.dropout;
  std::optional<double> attention_dropout{}, activation_dropout{}, embedding_dropout{};
  std::string tie_embeddings = "two";
  std::string dtype = "f32", optimizer = "adamw", schedule = "constant";
  int64_t epochs = 0, steps = 0;  // 0: not given
  double minutes = 0;
  double learning_rate = 0, noam_factor = 0;  // 0: not given

  uint64_t seed = 0;

  train::RunOptions run;
  std::string preset;               // empty: small
  std::vector<std::string> resume;  // a folder; empty: that of --out
  bool restart = false;
};

// Every flag that is a setting, and those of one call: --out, --resume, --restart.
void add_train_flags(CLI::App& verb, TrainOptions& options);

// The files and --set, by which settings are said without their flags.
void add_config_arguments(CLI::App& verb, TrainOptions& options);

// Checks settings against each other and settles what they mean together: the recipe, the run and
// the files. Throws Error, (usage) and (config).
void settle(TrainOptions& options);

// All that settle() has against the options, not only the first, but for what more settings beside
// them could mend.
std::vector<Error> contradictions(TrainOptions options);

}  // namespace rapt::cli
