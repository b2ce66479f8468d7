#include "rapt/train/run.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/descriptor.h"
#include "rapt/base/file.h"
#include "rapt/models/checkpoint.h"
#include "rapt/train/event_file.h"
#include "rapt/train/metrics.h"

namespace rapt::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Gives `to` the files under `from`, sharing their bytes where the file system can.
void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  const auto copied = [&](fs::copy_options how) {
    fs::copy(from, to, how | fs::copy_options::recursive, problem);
    return !problem;
  };
  if (copied(fs::copy_options::create_hard_links)) return;
  fs::remove_all(to, problem);
  if (!copied(fs::copy_options::overwrite_existing)) fail_file("copy", from, problem.value());
}

// The mean of models with the same parameters, one after the other.
class Mean {
 public:
  explicit Mean(std::vector<NamedParameter> parameters) : parameters_(std::move(parameters)) {
    for (const NamedParameter& p : parameters_)
      sums_.emplace_back(static_cast<size_t>(p.value().numel()));
  }

  void add() {
    ++count_;
    for_each([](double& sum, float value) { sum += static_cast<double>(value); });
  }

  void put() {
    for_each([this](double& sum, float& value) {
      value = static_cast<float>(sum / static_cast<double>(count_));
    });
  }

 private:
  template <class F>
  void for_each(const F& f) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      Tensor value = parameters_[i].value();
      float* elements = value.data<float>();
      for (size_t j = 0; j < sums_[i].size(); ++j) f(sums_[i][j], elements[j]);
    }
  }

  std::vector<NamedParameter> parameters_;
  std::vector<std::vector<double>> sums_;
  int64_t count_ = 0;
};

class Run {
 public:
  Run(const decode::Translator& translator, const data::PairCorpus& corpus,
      const ValidationSet* validation, const Recipe& recipe, const RunOptions& options,
      RunState state, const RunEvents& events)
      : translator_(translator),
        corpus_(corpus),
        validation_(validation),
        recipe_(recipe),
        options_(options),
        events_(events),
        state_(std::move(state)),
        checkpoints_(options.folder),
        optimizer_(recipe.make_optimizer(nn::parameters(*translator.model))) {
    if (options_.ema > 0)
      average_ = std::make_unique<optim::MovingAverage>(optimizer_->parameters(), options_.ema);
    take_folder();
    if (state_.place.step > 0) {
      resume();
    } else {
      clear_run(options_.folder);
    }
    open_logs();
  }

  RunResult train() {
    FitOptions fit_options = recipe_.fit_options();
    bool stopped = false;
    fit_options.stop = [&] {
      stopped = recipe_.fit.stop && recipe_.fit.stop();
      return stopped || is_early();
    };
    if (!is_early())
      fit(
          *translator_.model, corpus_, *optimizer_, fit_options,
          [&](const Progress& p) { after_step(p); }, state_.place);
    const int64_t step = state_.place.step;
    const bool late = !stopped && validation_ != nullptr && state_.best.validated != step;
    if (late) validate_now();
    if (late || !saved_.contains(step)) save(saved_.contains(step) && saved_[step]);
    const std::vector<int64_t> model_steps = choose_model(!stopped);
    commit(!stopped);
    return {.end = stopped ? End::stop : end(),
            .steps = step,
            .best = state_.best,
            .model_steps = model_steps};
  }

 private:
  // Makes it and holds it while the run goes on, against others that would write there.
  void take_folder() {
    std::error_code problem;
    fs::create_directories(options_.folder, problem);
    if (problem) fail_file("make", options_.folder, problem.value());
    lock_ = open_file(options_.folder, O_RDONLY | O_DIRECTORY);
    if (!lock_.is_open()) fail_file("read", options_.folder, errno);
    if (flock(lock_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      fail(ErrorKind::usage, "{}: another process trains there; stop it first or say another --out",
           options_.folder.string());
  }

  // Weights and optimizer are the checkpoint's; later checkpoints are damaged.
  void resume() {
    checkpoints_.clear_leftovers();
    const int64_t step = state_.place.step;
    load_training_state(checkpoints_.path_of(step), *optimizer_, average_.get());
    for (const int64_t saved : checkpoints_.steps()) {
      if (saved > step) continue;
      try {
        saved_[saved] = read_run_state(checkpoints_.path_of(saved)).regular;
      } catch (const Error& error) {
        if (events_.warn) events_.warn(error.what());
      }
    }
    remove_old();
  }

  // Behind what they hold of the steps that were done.
  void open_logs() {
    const int64_t step = state_.place.step, validated = state_.best.validated;
    metrics_ = std::make_unique<MetricsFile>(options_.folder / kMetricsFile, step, validated);
    const fs::path events = options_.folder / kEventFile;
    if (options_.tensorboard) {
      event_file_ = std::make_unique<EventFile>(events, step, validated);
    } else if (step == 0) {
      std::error_code problem;
      fs::remove(events, problem);
      if (problem) fail_file("remove", events, problem.value());
    }
  }

  bool is_early() const {
    return options_.patience > 0 && state_.best.worse_since >= options_.patience;
  }

  // The limit that the run is at.
  End end() const {
    const FitOptions& limits = recipe_.fit;
    if (is_early()) return End::patience;
    if (state_.place.step >= limits.steps) return End::steps;
    return state_.place.seconds >= limits.minutes * 60 ? End::minutes : End::epochs;
  }

  void after_step(const Progress& p) {
    const bool epoch_ended = p.batch == p.batches;
    log(p, epoch_ended);
    if (events_.progress) events_.progress(p);
    const bool best =
        validation_ != nullptr && is_due(options_.valid_every, p, epoch_ended) && validate_now();
    const bool several = options_.save_every > 0 || options_.keep_last > 1 || options_.average > 1;
    const bool regular = several && is_due(options_.save_every, p, epoch_ended);
    if (regular || best || seconds_since(saved_at_) >= options_.save_minutes * 60) save(regular);
  }

  static bool is_due(int64_t every, const Progress& p, bool epoch_ended) {
    return every > 0 ? p.step % every == 0 : epoch_ended;
  }

  void log(const Progress& p, bool epoch_ended) {
    if (!p.skipped.empty()) {
      metrics_->skipped(p.step, p.skipped);
      if (events_.warn)
        events_.warn(fmt::format("step {} was left out: {} is not finite", p.step, p.skipped));
    } else {
      if (average_) average_->update();
      state_.log.loss_sum += p.last_loss * static_cast<double>(p.last_tokens);
      state_.log.tokens += p.last_tokens;
      fresh_tokens_ += p.last_tokens;
    }
    if (p.step % options_.log_every != 0 && !epoch_ended) return;
    if (state_.log.tokens > 0) {
      const double seconds = seconds_since(logged_at_) - aside_;
      const MetricsFile::Trained line{
          .step = p.step,
          .epoch = p.epoch,
          .loss = state_.log.loss_sum / static_cast<double>(state_.log.tokens),
          .rate = p.rate,
          .norm = p.norm,
          .tokens = p.tokens,
          .tokens_per_second = seconds > 0 ? static_cast<double>(fresh_tokens_) / seconds : 0,
          .seconds = p.seconds};
      metrics_->trained(line);
      if (event_file_) event_file_->trained(line);
    }
    state_.log = {};
    fresh_tokens_ = 0;
    aside_ = 0;
    logged_at_ = Clock::now();
  }

  // Whether it is the best so far.
  bool validate_now() {
    const auto start = Clock::now();
    state_.best.validated = state_.place.step;
    const Validation v = validate_model();
    const double score = v.score(options_.metric);
    const bool best = std::isfinite(score) && (state_.best.step == 0 || score > state_.best.score);
    if (best) {
      state_.best = {.step = state_.place.step,
                     .score = score,
                     .worse_since = 0,
                     .validated = state_.place.step};
    } else {
      ++state_.best.worse_since;
    }
    metrics_->validated(state_.place.step, v, best);
    if (event_file_) event_file_->validated(state_.place.step, v);
    if (events_.validated) events_.validated(state_.place.step, v, best);
    aside_ += seconds_since(start);
    return best;
  }

  // Of the moving average where there is one.
  Validation validate_model() {
    const optim::Averaged averaged(average_.get());
    return validate(translator_, *validation_, options_.metric, recipe_.fit.batches.tokens);
  }

  void sync_logs() {
    metrics_->sync();
    if (event_file_) event_file_->sync();
  }

  void save(bool regular) {
    const auto start = Clock::now();
    state_.regular = regular;
    sync_logs();
    checkpoints_.write(translator_, *optimizer_, average_.get(), state_);
    saved_[state_.place.step] = regular;
    remove_old();
    saved_at_ = Clock::now();
    aside_ += seconds_since(start);
    if (events_.saved) events_.saved(checkpoints_.path_of(state_.place.step));
  }

  // The regular checkpoints, the newest `most` of them.
  std::vector<int64_t> regular(int64_t most) const {
    std::vector<int64_t> steps;
    for (auto it = saved_.rbegin(); it != saved_.rend() && std::cmp_less(steps.size(), most); ++it)
      if (it->second) steps.push_back(it->first);
    return steps;
  }

  // After a new one is on the disk and was read back.
  void remove_old() {
    std::vector<int64_t> wanted = regular(std::max(options_.keep_last, options_.average));
    wanted.push_back(saved_.rbegin()->first);
    if (state_.best.step > 0) wanted.push_back(state_.best.step);
    checkpoints_.keep_only(wanted);
    std::erase_if(saved_, [&](const auto& saved) {
      return std::find(wanted.begin(), wanted.end(), saved.first) == wanted.end();
    });
  }

  void load_model(int64_t step) {
    models::EncoderDecoder& model = *translator_.model;
    models::load_weights(model, checkpoints_.path_of(step) / models::kWeightsFile,
                         models::layout(model.config().layout));
  }

  // Puts the model that the run is for into the translator; its state is on the disk. Returns the
  // checkpoints that it is made of.
  std::vector<int64_t> choose_model(bool ended) {
    const std::vector<int64_t> averaged = regular(options_.average);
    const bool has_best = state_.best.step > 0 && saved_.contains(state_.best.step);
    if (ended && averaged.size() > 1) {
      Mean mean(optimizer_->parameters());
      for (const int64_t step : averaged) {
        load_model(step);
        mean.add();
      }
      mean.put();
      if (validation_ == nullptr || !has_best) return averaged;
      const Validation v =
          validate(translator_, *validation_, options_.metric, recipe_.fit.batches.tokens);
      const bool better = v.score(options_.metric) >= state_.best.score;
      if (events_.averaged) events_.averaged(averaged, v, better);
      if (better) return averaged;
    }
    const int64_t step = has_best ? state_.best.step : state_.place.step;
    load_model(step);
    return {step};
  }

  // The folder as it shall be found, all at once.
  void commit(bool ended) {
    sync_logs();
    write_folder(options_.folder, [&](const fs::path& temporary) {
      decode::write_translator(translator_, temporary);
      for (const char* log : {kMetricsFile, kEventFile}) {
        if (fs::exists(options_.folder / log)) link_or_copy(options_.folder / log, temporary / log);
      }
      if (!options_.settings.empty()) write_file(temporary / kSettingsFile, options_.settings);
      const fs::path inside = temporary / Checkpoints::kFolder;
      fs::create_directory(inside);
      for (const auto& [step, is_regular] : saved_) {
        const fs::path checkpoint = checkpoints_.path_of(step);
        link_or_copy(checkpoint, inside / checkpoint.filename());
      }
      if (ended) write_file(inside / kFinishedFile, fmt::format("{}\n", state_.place.step));
    });
  }

  const decode::Translator& translator_;
  const data::PairCorpus& corpus_;
  const ValidationSet* validation_;
  const Recipe& recipe_;
  const RunOptions& options_;
  const RunEvents& events_;
  RunState state_;
  Checkpoints checkpoints_;
  Descriptor lock_;
  std::map<int64_t, bool> saved_;  // the checkpoints, by step, and whether they are regular
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::MovingAverage> average_;  // or null
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<EventFile> event_file_;  // or null
  // Since the last line of the log in this process, and what of that time was no training.
  int64_t fresh_tokens_ = 0;
  double aside_ = 0;
  Clock::time_point logged_at_ = Clock::now(), saved_at_ = Clock::now();
};

}  // namespace

RunResult run(const decode::Translator& translator, const data::PairCorpus& corpus,
              const ValidationSet* validation, const Recipe& recipe, const RunOptions& options,
              RunState state, const RunEvents& events) {
  RAPT_CHECK(options.keep_last >= 1 && options.average >= 1 && options.log_every >= 1,
             "run: expected keep_last, average and log_every of at least 1, got {}, {} and {}",
             options.keep_last, options.average, options.log_every);
  return Run(translator, corpus, validation, recipe, options, std::move(state), events).train();
}

}  // namespace rapt::train
