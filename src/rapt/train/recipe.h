// Recipes: everything that decides how a translator is trained from a corpus of pairs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "rapt/decode/translator.h"
#include "rapt/optim/schedule.h"
#include "rapt/train/seq2seq.h"

namespace rapt::train {

enum class Rule { adamw, adam, sgd };

struct Recipe {
  models::EncoderDecoderConfig model;  // without what the vocabularies decide: sizes and ids
  text::VocabularyOptions words;
  Rule rule = Rule::adamw;
  optim::AdamOptions adam;  // its common options are sgd's, too
  double momentum = 0.9;    // of sgd
  // Where the rate falls to the end (linear, cosine) and `total` is 0, it is the length of the run.
  optim::Schedule schedule;
  // `rate` and `batches.seed` stay unset, see fit_options(). Without batches.pairs and
  // batches.tokens the corpus decides, see batch_tokens().
  FitOptions fit;

  // The bounds of the sentences that the model takes: max_len source words, and one target word
  // less, since the start symbol is a position too. Pairs with longer sides are left out.
  data::PairOptions pairs(const text::LineOptions& lines = {}) const;

  // Throws Error (config) where settings cannot be or contradict each other, whatever the corpus.
  void check() const;

  // Sets what the corpus decides: the tokens of a step and the end of the schedule. Throws Error
  // (config) where a schedule needs an end that is not known.
  void settle(const data::PairCorpus& corpus);

  // `fit` with the rates of the schedule and batches drawn by its seed. The recipe is a settled
  // one.
  FitOptions fit_options() const;

  std::unique_ptr<optim::Optimizer> make_optimizer(std::vector<NamedParameter> parameters) const;
};

// The tokens of a step that suit a corpus: an eighth of an epoch, so that a handful of sentences is
// learnt in as many epochs as a library of them, but at most 4096, and no less than its longest
// pair.
int64_t batch_tokens(const data::PairCorpus& corpus);

// The preset `small`: three layers of width 256 in the encoder and in the decoder, target embedding
// and projection tied, AdamW at a constant rate after a linear warm-up.
Recipe small_recipe();

// A new translator with these vocabularies and weights drawn by the seed of `recipe.fit`. Throws
// as Recipe::check does.
decode::Translator make_translator(const Recipe& recipe, data::PairVocabularies words);

// Trains it as the recipe says; `report` and the result are those of fit(), errors too.
double learn(const decode::Translator& translator, const data::PairCorpus& corpus,
             const Recipe& recipe, const std::function<void(const Progress&)>& report);

}  // namespace rapt::train
