#include "rapt/train/recipe.h"

#include <algorithm>
#include <utility>

#include "rapt/base/check.h"

namespace rapt::train {
namespace {

// Whether the schedule's length is that of the run.
bool falls_to_the_end(const optim::Schedule& schedule) {
  return schedule.total == 0 &&
         (schedule.decay == optim::Decay::linear || schedule.decay == optim::Decay::cosine);
}

}  // namespace

data::PairOptions Recipe::pairs(const text::LineOptions& lines) const {
  return {.max_source_words = model.max_len,
          .max_target_words = model.max_len - 1,
          .skip_too_long = true,
          .lines = lines};
}

void Recipe::check() const {
  models::EncoderDecoderConfig config = model;
  config.src_vocab_size = config.tgt_vocab_size = 4;  // the special entries are always there
  with_error_kind(ErrorKind::config, "train", [&] {
    RAPT_CHECK(config.max_len >= 2,
               "max_len: expected at least 2, the start symbol and a word, got {}", config.max_len);
    config.check();
    optim::Schedule whole = schedule;
    if (falls_to_the_end(whole)) whole.total = whole.warmup + 1;
    whole.at(1);
    make_optimizer({});
  });
}

void Recipe::settle(const data::PairCorpus& corpus) {
  if (fit.batches.tokens == 0 && fit.batches.pairs == 0) fit.batches.tokens = batch_tokens(corpus);
  if (!falls_to_the_end(schedule)) return;
  schedule.total = fit.steps;
  if (fit.epochs != kNoLimit) {
    const int64_t batches = data::BatchPlan(corpus, fit.batches, 0).size();
    const int64_t steps = (batches + fit.accumulate - 1) / fit.accumulate;
    if (fit.epochs < kNoLimit / steps)
      schedule.total = std::min(schedule.total, fit.epochs * steps);
  }
  if (schedule.total == kNoLimit)
    fail(ErrorKind::config,
         "schedule: the rate falls to the end of the run, which only its time decides; bound its "
         "steps or epochs, or say after how many steps the rate has fallen (--decay-steps)");
  with_error_kind(ErrorKind::config, "train", [&] { schedule.at(1); });
}

FitOptions Recipe::fit_options() const {
  FitOptions options = fit;
  options.batches.seed = options.seed;
  options.rate = [schedule = schedule](int64_t step) { return schedule.at(step + 1); };
  return options;
}

std::unique_ptr<optim::Optimizer> Recipe::make_optimizer(
    std::vector<NamedParameter> parameters) const {
  switch (rule) {
    case Rule::adamw:
      return optim::make_adamw(std::move(parameters), adam);
    case Rule::adam:
      return optim::make_adam(std::move(parameters), adam);
    case Rule::sgd:
      return optim::make_sgd(std::move(parameters), {.momentum = momentum, .common = adam.common});
  }
  fail(ErrorKind::failure, "recipe: unknown optimizer");
}

int64_t batch_tokens(const data::PairCorpus& corpus) {
  int64_t all = 0, longest = 0;
  for (int64_t pair = 0; pair < corpus.size(); ++pair) {
    const int64_t tokens = data::tokens_of(corpus, pair);
    all += tokens;
    longest = std::max(longest, tokens);
  }
  return std::max(longest, std::min<int64_t>(4096, (all + 7) / 8));
}

Recipe small_recipe() {
  Recipe recipe;
  recipe.model.d_model = 256;
  recipe.model.nhead = 4;
  recipe.model.dim_feedforward = 1024;
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 3;
  recipe.model.max_len = 512;
  recipe.model.scale_embeddings = true;
  recipe.model.tie_embeddings = models::TieEmbeddings::two;
  recipe.adam = {.beta2 = 0.98, .epsilon = 1e-9, .common = {.weight_decay = 0.01, .max_norm = 1}};
  recipe.schedule = {.rate = 1e-3, .warmup = 100};
  recipe.fit.epochs = 30;
  recipe.fit.batches.like_length = true;
  recipe.fit.label_smoothing = 0.1;
  recipe.fit.max_skips = 10;
  return recipe;
}

decode::Translator make_translator(const Recipe& recipe, data::PairVocabularies words) {
  recipe.check();
  models::EncoderDecoderConfig config = recipe.model;
  const text::SpecialIds& special = words.target.special();
  config.src_vocab_size = words.source.size();
  config.tgt_vocab_size = words.target.size();
  if (!special.end)
    fail(ErrorKind::data,
         "train: expected a target tokenizer with a control piece for the end, such as </s>, got "
         "one without; no translation could end");
  // Padding is known by length and start by its place: where a tokenizer lacks them (T5's starts
  // with padding), another control piece stands for them.
  config.end_id = *special.end;
  config.pad_id = special.pad.value_or(config.end_id);
  config.start_id = special.start.value_or(config.pad_id);
  config.unk_id = special.unk;
  Rng rng(recipe.fit.seed);
  decode::Translator translator;
  translator.model = with_error_kind(ErrorKind::config, "train", [&] {
    return std::make_unique<models::EncoderDecoder>(config, nn::Init{.rng = &rng});
  });
  translator.source = std::move(words.source);
  translator.target = std::move(words.target);
  return translator;
}

double learn(const decode::Translator& translator, const data::PairCorpus& corpus,
             const Recipe& recipe, const std::function<void(const Progress&)>& report) {
  Recipe settled = recipe;
  settled.settle(corpus);
  const auto optimizer = settled.make_optimizer(nn::parameters(*translator.model));
  return fit(*translator.model, corpus, *optimizer, settled.fit_options(), report);
}

}  // namespace rapt::train
