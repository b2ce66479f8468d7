#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace rapt::cli {

std::string duration(double seconds) {
  const int64_t s = std::llround(std::max(0.0, seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{:02}:{:02}", s / 60, s % 60);
}

ProgressPrinter::ProgressPrinter(const Globals& globals, int64_t plain_every_epochs)
    : every_(std::max<int64_t>(1, plain_every_epochs)) {
  if (globals.quiet || globals.progress == "none") {
    kind_ = Kind::none;
  } else if (globals.progress == "bar" ||
             (globals.progress == "auto" && isatty(STDERR_FILENO) == 1)) {
    kind_ = Kind::bar;
  }
}

ProgressPrinter::~ProgressPrinter() {
  if (drawn_) fmt::print(stderr, "\n");
}

void ProgressPrinter::report(const train::Progress& progress) {
  const bool epoch_ended = progress.batch == progress.batches;
  if (kind_ == Kind::plain) {
    if (epoch_ended && (progress.epoch % every_ == 0 || progress.epoch == progress.epochs))
      draw(progress, true);
  } else if (kind_ == Kind::bar) {
    const auto now = std::chrono::steady_clock::now();
    if (!epoch_ended && now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    draw(progress, epoch_ended);
  }
}

void ProgressPrinter::draw(const train::Progress& p, bool epoch_ended) {
  const double speed = p.seconds > 0 ? static_cast<double>(p.tokens) / p.seconds : 0;
  const double left =
      p.step > 0 ? p.seconds / static_cast<double>(p.step) * static_cast<double>(p.steps - p.step)
                 : 0;
  const std::string numbers =
      fmt::format("epoch {:>{}}/{}  loss {:.4f}  {:.0f} tokens/s  {} left", p.epoch,
                  std::to_string(p.epochs).size(), p.epochs, p.loss, speed, duration(left));
  if (kind_ == Kind::plain) {
    fmt::print(stderr, "{}\n", numbers);
    return;
  }
  constexpr int kWidth = 24;
  const int full =
      p.steps == 0 ? kWidth : static_cast<int>(p.step * kWidth / std::max(p.step, p.steps));
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < full ? "█" : "░";
  // At the end of an epoch that is to be kept the line stays; otherwise the next one replaces it.
  const bool keep = epoch_ended && (p.epoch % every_ == 0 || p.epoch == p.epochs);
  fmt::print(stderr, "\r{} {}\x1b[K{}", bar, numbers, keep ? "\n" : "");
  drawn_ = !keep;
}

}  // namespace rapt::cli
