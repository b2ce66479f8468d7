// rapt demo: the worked example, trained, translated and drawn.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "rapt/base/check.h"
#include "rapt/decode/greedy.h"
#include "rapt/decode/translator.h"
#include "rapt/optim/optimizer.h"
#include "rapt/show/heat_map.h"
#include "rapt/text/words.h"
#include "rapt/train/seq2seq.h"

namespace rapt::cli {
namespace {

constexpr const char* kSources[] = {"我 有 一 个 好 朋 友", "我 有 零 个 女 朋 友"};
constexpr const char* kTargets[] = {"i have a good friend .", "i have zero girl friend ."};

struct Options {
  bool official = false;
  int64_t epochs = 0;  // 0: 20 hand-built, 100 official
  std::string out = "demo";
};

decode::Translator make_translator(const Options& options, uint64_t seed) {
  decode::Translator t;
  t.source =
      text::Vocabulary({"P", "我", "有", "一", "个", "好", "朋", "友", "零", "女"}, {.pad = 0});
  t.target =
      text::Vocabulary({"P", "i", "have", "a", "good", "friend", "zero", "girl", "S", "E", "."},
                       {.pad = 0, .start = 8, .end = 9});
  models::EncoderDecoderConfig config = options.official
                                            ? models::EncoderDecoderConfig::torch(10, 11)
                                            : models::EncoderDecoderConfig::hand_built(10, 11);
  config.start_id = 8;
  config.end_id = 9;
  Rng rng(seed);
  t.model = std::make_unique<models::EncoderDecoder>(config, nn::Init{.rng = &rng});
  return t;
}

void learn(const decode::Translator& t, const Options& options, const Globals& globals) {
  data::PairCorpus corpus;
  for (size_t i = 0; i < std::size(kSources); ++i) {
    corpus.add(t.source.encode(kSources[i], "demo"), t.target.encode(kTargets[i], "demo"), i);
  }
  const auto optimizer = optim::make_sgd(nn::parameters(*t.model), {.momentum = 0.99});
  ProgressPrinter printer(globals);
  train::fit(*t.model, corpus, *optimizer,
             {.epochs = options.epochs > 0 ? options.epochs
                        : options.official ? 100
                                           : 20,
              .batches = {.pairs = 2, .shuffle = false},
              .seed = globals.seed,
              .rate = [](int64_t) { return 1e-3; }},
             [&](const train::Progress& progress) { printer.report(progress); });
}

// One picture a kind and layer, a grid of its heads; the last layer's cross-attention also on a
// terminal.
void draw(const decode::Translator& t, const std::vector<int32_t>& source,
          const std::vector<int32_t>& translated, const std::filesystem::path& folder,
          const Globals& globals) {
  const std::vector<int32_t> read = decode::decoder_input(t, translated);
  const models::Attentions attentions = decode::attentions_of(t, source, read);
  const std::vector<std::string> source_words = decode::spellings(t.source, source),
                                 target_words = decode::spellings(t.target, read);
  std::filesystem::create_directories(folder);
  const auto layers = [&](const char* name, const char* title, const std::vector<Tensor>& kind,
                          const std::vector<std::string>& rows,
                          const std::vector<std::string>& cols, const char* row_axis,
                          const char* col_axis) {
    for (size_t l = 0; l < kind.size(); ++l) {
      const auto maps = show::head_maps(kind[l], 0, rows, cols);
      show::write_png(folder / fmt::format("{}_layer{}.png", name, l), maps,
                      {.title = fmt::format("{}, layer {}", title, l),
                       .row_axis = row_axis,
                       .col_axis = col_axis});
    }
  };
  layers("encoder_self", "Encoder self-attention", attentions.encoder, source_words, source_words,
         "source", "source");
  layers("decoder_self", "Decoder self-attention", attentions.decoder, target_words, target_words,
         "target", "target");
  layers("cross", "Cross-attention", attentions.cross, target_words, source_words, "target",
         "source");
  if (!globals.quiet && !is_json(globals) && is_terminal(Stream::err)) {
    const auto maps = show::head_maps(attentions.cross.back(), 0, target_words, source_words);
    const auto color =
        wants_color(globals, Stream::err) ? show::TerminalColor::full : show::TerminalColor::none;
    message(show::to_terminal(std::span(maps).first(1), {.color = color}));
  }
}

int demo(const Options& options, const Globals& globals) {
  const std::filesystem::path out = options.out;
  decode::check_model_folder(out / "model");
  const decode::Translator t = make_translator(options, globals.seed);
  const int64_t parameters = nn::count_parameters(*t.model);
  say(globals,
      fmt::format("{} parameters, {} sentences, {} spelling", parameters, std::size(kSources),
                  options.official ? "official" : "hand-built"),
      {{"parameters", parameters}, {"pairs", std::size(kSources)}});
  learn(t, options, globals);
  decode::save_translator(t, out / "model");
  const std::vector<int32_t> source = t.source.encode(kSources[1], "demo");
  const std::vector<std::vector<int32_t>> sentences = {source};
  const decode::Decoded result = decode::greedy(*t.model, sentences).front();
  draw(t, source, result.ids, out / "attention", globals);
  say(globals,
      fmt::format("least margin between the best and the second logit of a step: {:.2f}",
                  result.margin),
      {{"margin", result.margin}});
  say(globals,
      fmt::format("wrote {} and {}", (out / "model").string(), (out / "attention").string()));
  say(globals, fmt::format("{} ->", kSources[1]));
  print(t.target.decode(result.ids) + "\n");
  return 0;
}

}  // namespace

void add_demo(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "demo", "Train the worked example on two sentences, translate one and draw its attention");
  verb->add_flag("--official", options->official,
                 "The model around torch.nn.Transformer instead of the hand-built one");
  verb->add_option("--epochs", options->epochs,
                   "Passes over the two sentences (default: 20, official 100)")
      ->type_name("N")
      ->check(whole(1, int64_t{1} << 40));
  verb->add_option("--out", options->out, "Where the model and the pictures go")
      ->type_name("DIR")
      ->capture_default_str();
  verb->footer("Example:\n  rapt demo --out demo");
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return demo(*options, globals); };
  });
}

}  // namespace rapt::cli
