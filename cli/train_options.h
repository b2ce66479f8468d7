// What the flags of rapt train say.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rapt/train/run.h"

namespace rapt::cli {

struct TrainOptions {
  data::PairFiles files;
  std::string out, columns = "1,2";
  int64_t subwords = 0;  // pieces of a joint model learnt from the text; 0: words
  std::string source_tokenizer, target_tokenizer;
  std::string invalid_utf8 = "strict";

  data::PairFiles valid_files;  // none: no validation
  std::string valid_metric = "loss";

  train::Recipe recipe = train::small_recipe();
  int64_t layers = recipe.model.num_encoder_layers;
  double dropout = recipe.model.dropout;
  std::string tie_embeddings = "two";
  std::string dtype = "f32", optimizer = "adamw", schedule = "constant";
  int64_t epochs = 0, steps = 0;  // 0: not given
  double minutes = 0;
  double learning_rate = 0, noam_factor = 0;  // 0: not given

  train::RunOptions run;
  std::string preset;               // empty: small
  std::vector<std::string> resume;  // a folder; empty: that of --out
  bool restart = false;
};

// Every flag of the verb.
void add_train_flags(CLI::App& verb, TrainOptions& options);

// Checks flags against each other and settles what they mean together: the recipe, the run and the
// files. Throws Error (usage), and (config) as Recipe::check does.
void settle(TrainOptions& options, uint64_t seed);

// The flags that were given and decide what the run is, as a JSON object of name -> value; paths
// are made absolute.
std::string given_flags(const CLI::App& verb);

// `given` beside those of `stored` and of the preset that they name, the given ones winning over
// the stored and these over the preset's, read into fresh options. Throws Error (model) where
// `stored` is no such object.
TrainOptions with_stored_flags(const std::string& stored, const CLI::App& given);

}  // namespace rapt::cli
