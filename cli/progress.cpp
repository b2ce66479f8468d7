#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/output.h"

namespace rapt::cli {
namespace {

// Columns of the terminal; 80 where it does not say.
int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

double tokens_per_second(const train::Progress& p) {
  return p.seconds > 0 ? static_cast<double>(p.tokens) / p.seconds : 0;
}

std::string of(int64_t limit) {
  return limit == train::kNoLimit ? "" : "/" + std::to_string(limit);
}

std::string numbers(const train::Progress& p) {
  const auto width = p.epochs == train::kNoLimit ? 1 : std::to_string(p.epochs).size();
  std::string text = fmt::format("epoch {:>{}}{}  loss {:.4f}  {:.0f} tokens/s", p.epoch, width,
                                 of(p.epochs), p.loss, tokens_per_second(p));
  if (std::isfinite(p.seconds_left)) text += fmt::format("  {} left", duration(p.seconds_left));
  return text;
}

// To the millisecond, or the thousandth of a token.
double rounded(double value) { return std::round(value * 1000) / 1000; }

Fields fields(const train::Progress& p) {
  Fields all = {{"epoch", p.epoch},
                {"epochs", p.epochs},
                {"batch", p.batch},
                {"batches", p.batches},
                {"step", p.step},
                {"steps", p.steps},
                {"loss", p.loss},
                {"last_loss", p.last_loss},
                {"learning_rate", p.rate},
                {"tokens", p.tokens},
                {"tokens_per_s", rounded(tokens_per_second(p))},
                {"seconds", rounded(p.seconds)},
                {"seconds_left", rounded(p.seconds_left)}};
  if (p.epochs == train::kNoLimit) all.erase("epochs");
  if (p.steps == train::kNoLimit) all.erase("steps");
  if (!std::isfinite(p.seconds_left)) all.erase("seconds_left");
  return all;
}

// As much of a bar as fits beside `taken` columns, with the space after it.
std::string bar(const train::Progress& p, int taken) {
  const int width = std::min(24, terminal_width() - taken - 2);
  if (width < 4) return "";
  // By steps where their number is known, else by time; nothing where neither bounds the run.
  const double time = p.seconds / std::max(1e-9, p.seconds + p.seconds_left);
  const auto full = p.steps == train::kNoLimit
                        ? static_cast<int64_t>(width * time)
                        : p.step * width / std::max<int64_t>({1, p.step, p.steps});
  std::string text;
  for (int64_t i = 0; i < width; ++i) text += i < full ? "█" : "░";
  return text + " ";
}

}  // namespace

std::string duration(double seconds) {
  const int64_t s = std::llround(std::max(0.0, seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{:02}:{:02}", s / 60, s % 60);
}

ProgressPrinter::ProgressPrinter(const Globals& globals) : globals_(globals) {
  if (globals.quiet || globals.progress == "none") {
    kind_ = Kind::none;
  } else if (is_json(globals)) {
    kind_ = Kind::plain;
  } else if (globals.progress == "bar" ||
             (globals.progress == "auto" && is_terminal(Stream::err))) {
    kind_ = Kind::bar;
  }
}

ProgressPrinter::~ProgressPrinter() { end_line(); }

void ProgressPrinter::end_line() {
  if (drawn_) message("\n");
  drawn_ = false;
}

void ProgressPrinter::report(const train::Progress& progress) {
  if (kind_ == Kind::none) return;
  const bool epoch_ended = progress.batch == progress.batches;
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::milliseconds pause(kind_ == Kind::bar ? 100 : 30'000);
  if (!epoch_ended && now - last_ < pause) return;
  last_ = now;
  draw(progress, epoch_ended);
}

void ProgressPrinter::draw(const train::Progress& progress, bool epoch_ended) {
  std::string line = numbers(progress);
  if (kind_ == Kind::plain) {
    say(globals_, line, fields(progress));
    return;
  }
  // A line that is wider than the terminal could not be drawn over.
  line.resize(std::min(line.size(), static_cast<size_t>(std::max(1, terminal_width() - 1))));
  const std::string shown = bar(progress, static_cast<int>(line.size())) + line;
  message(fmt::format("\r{}\x1b[K{}", shown, epoch_ended ? "\n" : ""));
  drawn_ = !epoch_ended;
}

}  // namespace rapt::cli
