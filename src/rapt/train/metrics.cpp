#include "rapt/train/metrics.h"

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/train/append_file.h"

namespace rapt::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kLongestLine = 100'000;

// Calls `each` with every line up to the first that is no object with a step: from there on the
// file is damaged.
void for_each_line(const fs::path& path,
                   const std::function<void(std::string_view text, const json& line)>& each) {
  const std::string text = read_file(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) return;  // cut off
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line.size() > kLongestLine) return;
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer())
      return;
    each(line, object);
  }
}

double rounded(double value, double parts) { return std::round(value * parts) / parts; }

}  // namespace

struct MetricsFile::State {
  explicit State(const fs::path& path) : file(path) {}

  void write(const ordered_json& line) {
    file.write(line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  }

  AppendFile file;
};

MetricsFile::MetricsFile(const fs::path& path, int64_t step, int64_t validated)
    : state_(std::make_unique<State>(path)) {
  size_t kept = 0;  // bytes: what is dropped stands at the end
  bool all = step > 0;
  for_each_line(path, [&](std::string_view text, const json& line) {
    const int64_t last = line.contains("valid_loss") ? validated : step;
    all = all && line["step"].get<int64_t>() <= last;
    if (all) kept += text.size() + 1;
  });
  state_->file.cut(kept);
}

MetricsFile::~MetricsFile() = default;

void MetricsFile::trained(const Trained& t) {
  ordered_json line = {{"step", t.step},
                       {"epoch", t.epoch},
                       {"loss", t.loss},
                       {"learning_rate", t.rate},
                       {"gradient_norm", t.norm},
                       {"tokens", t.tokens},
                       {"tokens_per_s", rounded(t.tokens_per_second, 10)},
                       {"seconds", rounded(t.seconds, 1000)}};
  if (!std::isfinite(t.norm)) line.erase("gradient_norm");
  state_->write(line);
}

void MetricsFile::validated(int64_t step, const Validation& v, bool best) {
  ordered_json line = {
      {"step", step}, {"valid_loss", v.loss}, {"valid_perplexity", v.perplexity()}};
  if (v.bleu) line["valid_bleu"] = *v.bleu;
  if (v.chrf) line["valid_chrf"] = *v.chrf;
  line["best"] = best;
  state_->write(line);
}

void MetricsFile::skipped(int64_t step, const std::string& why) {
  state_->write({{"step", step}, {"skipped", why}});
}

void MetricsFile::sync() { state_->file.sync(); }

std::vector<MetricsPoint> read_metrics(const fs::path& path) {
  std::vector<MetricsPoint> points;
  with_error_kind(ErrorKind::data, "", [&] {
    for_each_line(path, [&](std::string_view, const json& line) {
      const auto number = [&](const char* key) {
        const auto found = line.find(key);
        return found != line.end() && found->is_number() ? found->get<double>()
                                                         : std::numeric_limits<double>::quiet_NaN();
      };
      points.push_back({.step = line["step"].get<int64_t>(),
                        .loss = number("loss"),
                        .rate = number("learning_rate"),
                        .norm = number("gradient_norm"),
                        .valid_loss = number("valid_loss"),
                        .valid_bleu = number("valid_bleu"),
                        .valid_chrf = number("valid_chrf")});
    });
  });
  if (points.empty())
    fail(ErrorKind::data, "{}: expected a JSON object a line with a step in it, got none",
         path.string());
  return points;
}

}  // namespace rapt::train
