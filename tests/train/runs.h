// Small runs for tests: a corpus that a tiny translator learns, and its recipe.
#pragma once

#include <map>

#include "rapt/base/file.h"
#include "rapt/train/metrics.h"
#include "rapt/train/run.h"
#include "tests/testing/tensors.h"
#include "tests/testing/testing.h"
#include "tests/train/reversed_pairs.h"

namespace rapt::train::testing {

using namespace rapt::testing;

inline Recipe tiny_recipe() {
  Recipe recipe = small_recipe();
  recipe.model.d_model = 16;
  recipe.model.nhead = 2;
  recipe.model.dim_feedforward = 32;
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 1;
  recipe.model.max_len = 12;
  recipe.model.dropout = recipe.model.position_dropout = 0.1;
  recipe.schedule = {.rate = 1e-2, .warmup = 3};
  recipe.fit.epochs = 3;
  recipe.fit.batches.tokens = 40;
  return recipe;
}

inline data::PairVocabularies words() {
  text::WordCounter source, target;
  source.add("a b c d");
  target.add("w x y z");
  return {text::Tokenizer(source.build()), text::Tokenizer(target.build())};
}

// For the words above, whose ids begin behind the special ones.
inline data::PairCorpus corpus_of(int64_t pairs, uint64_t seed = 8) {
  return reversed_pairs(pairs, 4, 5, seed);
}

inline ValidationSet validation_of(const decode::Translator& translator, int64_t pairs) {
  ValidationSet set{.corpus = corpus_of(pairs, 9), .sources = {}, .references = {}};
  for (int64_t i = 0; i < pairs; ++i) {
    const auto source = set.corpus.sources[i], target = set.corpus.targets[i];
    set.sources.push_back(translator.source.decode({source.begin(), source.end()}));
    set.references.push_back(translator.target.decode({target.begin(), target.end()}));
  }
  return set;
}

// A run of a recipe in a folder, that can be stopped and goes on by itself.
struct Runner {
  Recipe recipe = tiny_recipe();
  RunOptions options{};
  int64_t validation_pairs = 0;
  RunEvents events{};

  // Goes on where there is a checkpoint, else begins. Ends after `steps` more steps if given.
  RunResult go(const std::filesystem::path& folder, int64_t steps = kNoLimit) {
    const data::PairCorpus corpus = corpus_of(30);
    Recipe settled = recipe;
    settled.settle(corpus);
    int64_t done = 0;
    if (steps != kNoLimit) settled.fit.stop = [&] { return ++done == steps; };
    RunOptions here = options;
    here.folder = folder;
    const auto begun = open_run(folder, events.warn);
    const decode::Translator translator =
        begun ? decode::load_translator(begun->checkpoint) : make_translator(settled, words());
    const ValidationSet set = validation_of(translator, validation_pairs);
    return run(translator, corpus, validation_pairs > 0 ? &set : nullptr, settled, here,
               begun ? begun->state : RunState{}, events);
  }
};

inline std::string weights_of(const std::filesystem::path& folder) {
  return read_file(folder / "model.safetensors");
}

// All that metrics.jsonl says but times.
inline std::string timeless_metrics(const std::filesystem::path& folder) {
  std::string text;
  for (const MetricsPoint& p : read_metrics(folder / kMetricsFile))
    text += std::to_string(p.step) + " " + std::to_string(p.loss) + " " + std::to_string(p.rate) +
            " " + std::to_string(p.norm) + " " + std::to_string(p.valid_loss) + " " +
            std::to_string(p.valid_bleu) + "\n";
  return text;
}

}  // namespace rapt::train::testing
