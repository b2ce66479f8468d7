#include "rapt/train/run.h"

#include "rapt/base/runtime.h"
#include "tests/train/runs.h"

namespace rapt::train {
namespace {

using namespace testing;
namespace fs = std::filesystem;

// Whether a run that stops every `pieces` steps ends as one that does not.
void expect_resumed_is_unbroken(const Runner& runner, int64_t pieces, const std::string& what) {
  SCOPED_TRACE(what);
  const TemporaryFolder folder;
  Runner r = runner;
  const RunResult whole = r.go(folder.path() / "whole");
  int stops = 0;
  while (!r.go(folder.path() / "pieces", pieces).ended()) ++stops;
  EXPECT_GE(stops, 2);
  EXPECT_TRUE(whole.ended());
  EXPECT_EQ(weights_of(folder.path() / "pieces"), weights_of(folder.path() / "whole"));
  EXPECT_EQ(timeless_metrics(folder.path() / "pieces"), timeless_metrics(folder.path() / "whole"));
}

TEST(Run, R21_ARunThatIsResumedEndsAsTheUnbrokenOne) {
  for (const int threads : {1, 2}) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    Runner runner;
    expect_resumed_is_unbroken(runner, 7, "adamw, dropout, shuffling");
    runner.options = {.save_every = 5,
                      .keep_last = 2,
                      .average = 3,
                      .ema = 0.9,
                      .valid_every = 4,
                      .log_every = 3};
    runner.validation_pairs = 10;
    runner.recipe.fit.accumulate = 2;
    expect_resumed_is_unbroken(runner, 3, "accumulation, averages, validation");
  }
}

TEST(Run, ResumedIsUnbrokenWithEveryOptimizerAndInBf16) {
  for (const Rule rule : {Rule::adam, Rule::sgd}) {
    Runner runner;
    runner.recipe.rule = rule;
    expect_resumed_is_unbroken(runner, 8, rule == Rule::adam ? "adam" : "sgd");
  }
  Runner runner;
  runner.recipe.fit.compute_type = DType::bf16;
  runner.options.ema = 0.9;
  expect_resumed_is_unbroken(runner, 8, "bf16");
}

TEST(Run, R19_RatesGoOnWhereTheyWere) {
  using optim::Decay;
  for (const Decay decay : {Decay::constant, Decay::inverse_sqrt, Decay::linear, Decay::cosine}) {
    Runner runner;
    runner.recipe.schedule.decay = decay;
    std::vector<double> whole, pieces;
    const TemporaryFolder folder;
    runner.events.progress = [&](const Progress& p) { whole.push_back(p.rate); };
    runner.go(folder.path() / "whole");
    runner.events.progress = [&](const Progress& p) { pieces.push_back(p.rate); };
    while (!runner.go(folder.path() / "pieces", 9).ended()) {
    }
    EXPECT_EQ(pieces, whole);
    const bool falls = decay == Decay::linear || decay == Decay::cosine;
    EXPECT_EQ(whole.back() < 1e-12, falls);  // at the run's own end
  }
}

TEST(Run, ALimitThatIsRaisedGoesOnAsIfItHadBeenThatFromTheStart) {
  const TemporaryFolder folder;
  Runner runner;
  runner.go(folder.path() / "a");
  runner.recipe.fit.epochs = 5;
  EXPECT_TRUE(runner.go(folder.path() / "a").ended());
  runner.go(folder.path() / "b");
  EXPECT_EQ(weights_of(folder.path() / "a"), weights_of(folder.path() / "b"));
  const RunResult again = runner.go(folder.path() / "a");  // nothing is left to do
  EXPECT_EQ(weights_of(folder.path() / "a"), weights_of(folder.path() / "b"));
  EXPECT_TRUE(again.ended());
}

TEST(Run, StepsAndTimeEndIt) {
  const TemporaryFolder folder;
  Runner runner;
  runner.recipe.fit.epochs = kNoLimit;
  runner.recipe.fit.steps = 11;
  EXPECT_EQ(runner.go(folder.path() / "steps").steps, 11);
  runner.recipe.fit.steps = kNoLimit;
  runner.recipe.fit.minutes = 1e-9;
  EXPECT_EQ(runner.go(folder.path() / "time").steps, 1);
}

TEST(Run, TheBestModelIsTheOneThatIsKept) {
  const TemporaryFolder folder;
  Runner runner;
  runner.validation_pairs = 10;
  runner.recipe.fit.epochs = 8;
  std::map<int64_t, double> losses;
  runner.events.validated = [&](int64_t step, const Validation& v, bool) { losses[step] = v.loss; };
  runner.recipe.schedule.rate = 0.05;  // so that later epochs are worse
  const RunResult result = runner.go(folder.path());
  for (const auto& [step, loss] : losses) EXPECT_GE(loss, losses[result.best.step]) << step;
  EXPECT_EQ(weights_of(folder.path()),
            weights_of(Checkpoints(folder.path()).path_of(result.best.step)));
  const decode::Translator t = decode::load_translator(folder.path());
  const Validation again =
      validate(t, validation_of(t, 10), ValidationMetric::loss, runner.recipe.fit.batches.tokens);
  EXPECT_EQ(again.loss, losses[result.best.step]);
  EXPECT_NEAR(again.perplexity(), std::exp(again.loss), 1e-12);
}

TEST(Run, PatienceEndsARunThatGetsNoBetter) {
  const TemporaryFolder folder;
  Runner runner;
  runner.validation_pairs = 5;
  runner.recipe.fit.epochs = 200;
  runner.recipe.schedule = {.rate = 1e-12};  // nothing changes
  runner.options.patience = 3;
  int validations = 0;
  runner.events.validated = [&](int64_t, const Validation&, bool) { ++validations; };
  const RunResult result = runner.go(folder.path());
  EXPECT_EQ(result.end, End::patience);
  EXPECT_TRUE(result.ended());
  EXPECT_LT(validations, 20);
  EXPECT_EQ(result.best.worse_since, 3);
}

TEST(Run, TranslationsCanSayWhichModelIsTheBest) {
  const TemporaryFolder folder;
  Runner runner;
  runner.validation_pairs = 8;
  runner.recipe.fit.epochs = 150;
  runner.recipe.model.dropout = runner.recipe.model.position_dropout = 0;
  runner.options.metric = ValidationMetric::bleu;
  runner.options.valid_every = 100;
  double best = 0;
  Validation last;
  runner.events.validated = [&](int64_t, const Validation& v, bool) {
    best = std::max(best, v.bleu.value());
    last = v;
  };
  const RunResult result = runner.go(folder.path());
  EXPECT_EQ(result.best.score, best);
  EXPECT_GT(best, 20);
  EXPECT_GT(last.chrf.value(), 20);
  EXPECT_FALSE(last.translation.empty());
  EXPECT_EQ(last.reference.size(), last.source.size());
}

TEST(Run, TheAverageIsTheMeanOfTheLastCheckpoints) {
  const TemporaryFolder folder;
  Runner runner;
  runner.options.average = 3;
  runner.go(folder.path());
  const Checkpoints checkpoints(folder.path());
  ASSERT_EQ(checkpoints.steps().size(), 3);
  std::vector<std::vector<float>> all;
  std::vector<fs::path> folders = {folder.path()};
  for (const int64_t step : checkpoints.steps()) folders.push_back(checkpoints.path_of(step));
  for (const fs::path& path : folders) {
    const decode::Translator t = decode::load_translator(path);
    std::vector<float> values;
    for (const NamedParameter& p : nn::parameters(*t.model)) {
      const Tensor value = p.value();
      values.insert(values.end(), value.data<float>(), value.data<float>() + value.numel());
    }
    all.push_back(values);
  }
  for (size_t i = 0; i < all[0].size(); ++i)
    ASSERT_NEAR(all[0][i], (all[1][i] + all[2][i] + all[3][i]) / 3, 1e-6) << i;
}

TEST(Run, R62_TheNewestAndTheBestStayWhateverTheLimit) {
  for (const int64_t keep : {1, 2}) {
    const TemporaryFolder folder;
    Runner runner;
    runner.options.keep_last = keep;
    runner.options.save_every = 3;
    runner.validation_pairs = 5;
    runner.recipe.fit.epochs = 4;
    runner.recipe.schedule = {.rate = 1e-12};
    runner.options.valid_every = 4;  // the first is the best: nothing gets better
    const Checkpoints checkpoints(folder.path());
    runner.events.saved = [&](const fs::path& path) {
      EXPECT_TRUE(fs::exists(path));
      EXPECT_LE(checkpoints.steps().size(), static_cast<size_t>(keep + 2));
      for (const int64_t step : checkpoints.steps()) verify_checkpoint(checkpoints.path_of(step));
    };
    const RunResult result = runner.go(folder.path());
    const std::vector<int64_t> steps = checkpoints.steps();
    EXPECT_EQ(steps.front(), result.best.step);
    EXPECT_EQ(steps.back(), result.steps);
  }
}

TEST(Run, R61_ADamagedCheckpointGivesWayToTheOneBeforeAndSaysSo) {
  const TemporaryFolder folder;
  Runner runner;
  runner.options.keep_last = 2;
  runner.options.save_every = 4;
  runner.go(folder.path() / "whole");
  runner.go(folder.path() / "run", 13);
  const Checkpoints checkpoints(folder.path() / "run");
  const std::vector<int64_t> steps = checkpoints.steps();
  const fs::path newest = checkpoints.path_of(steps.back());
  std::string bytes = read_file(newest / "training.safetensors");
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 4);
  write_file(newest / "training.safetensors", bytes);
  std::string warning;
  const auto begun = open_run(folder.path() / "run", [&](const std::string& w) { warning = w; });
  ASSERT_TRUE(begun.has_value());
  EXPECT_EQ(begun->state.place.step, steps[steps.size() - 2]);
  EXPECT_NE(warning.find("is damaged"), std::string::npos) << warning;
  while (!runner.go(folder.path() / "run", 7).ended()) {
  }
  EXPECT_EQ(weights_of(folder.path() / "run"), weights_of(folder.path() / "whole"));

  for (const int64_t step : checkpoints.steps())
    fs::resize_file(checkpoints.path_of(step) / "model.safetensors", 100);
  EXPECT_NE(error_of([&] { open_run(folder.path() / "run", {}); }).find("no checkpoint is whole"),
            std::string::npos);
}

TEST(Run, R20_ACheckpointWithoutTheOptimizerIsNoneToGoOnFrom) {
  const TemporaryFolder folder;
  Runner runner;
  runner.go(folder.path(), 5);
  fs::remove(Checkpoints(folder.path()).path_of(5) / "training.safetensors");
  const std::string error = error_of([&] { runner.go(folder.path()); });
  EXPECT_NE(error.find("training.safetensors"), std::string::npos) << error;
}

TEST(Run, ARunIsNotLostUnasked) {
  const TemporaryFolder folder;
  Runner runner;
  runner.go(folder.path() / "run", 5);
  const auto complaint = [&] { return error_of([&] { expect_no_run(folder.path() / "run"); }); };
  EXPECT_NE(complaint().find("stopped there at step 5"), std::string::npos);
  runner.go(folder.path() / "run");
  EXPECT_NE(complaint().find("ended there"), std::string::npos);
  clear_run(folder.path() / "run");
  expect_no_run(folder.path() / "run");
  EXPECT_FALSE(open_run(folder.path() / "run", {}).has_value());
  EXPECT_NO_THROW(decode::load_translator(folder.path() / "run"));
}

TEST(Run, ChangedSettingsAndFilesAreNamed) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "text").string();
  write_file(path, "a b\n");
  Recipe recipe = tiny_recipe();
  RunState state{.settings = settings_of(recipe, {}), .files = data_files({{"--source", path}})};
  expect_same_settings(state, settings_of(recipe, {}));
  expect_same_files(state, data_files({{"--source", path}}));
  recipe.fit.label_smoothing = 0.2;
  recipe.fit.epochs = 99;  // may change
  EXPECT_NE(error_of([&] {
              expect_same_settings(state, settings_of(recipe, {}));
            }).find("--label-smoothing: the run was begun with 0.1, got 0.2"),
            std::string::npos);
  write_file(path, "a c\n");
  EXPECT_NE(error_of([&] {
              expect_same_files(state, data_files({{"--source", path}}));
            }).find(path + ": the file has changed"),
            std::string::npos);
  EXPECT_NE(error_of([&] { expect_same_files(state, {}); }).find("--source"), std::string::npos);
}

}  // namespace
}  // namespace rapt::train
