// rapt plot: the curves of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/program.h"
#include "rapt/base/check.h"
#include "rapt/show/curves.h"
#include "rapt/train/metrics.h"

namespace rapt::cli {
namespace {

namespace fs = std::filesystem;
using Point = train::MetricsPoint;

struct Options {
  std::string run, out;
  bool log_y = false;
};

// A picture: curves on one scale.
struct Picture {
  std::string name;  // "" or what stands before the ending of its file
  std::vector<show::Curve> curves;
  show::CurveOptions options;
};

// The points that have the value; the last of several at one step.
show::Curve curve_of(const std::vector<Point>& points, const char* name, double Point::*value) {
  show::Curve curve{.name = name, .x = {}, .y = {}};
  for (const Point& p : points) {
    if (!std::isfinite(p.*value)) continue;
    const auto step = static_cast<double>(p.step);
    if (!curve.x.empty() && curve.x.back() >= step) {
      curve.x.pop_back();
      curve.y.pop_back();
    }
    curve.x.push_back(step);
    curve.y.push_back(p.*value);
  }
  return curve;
}

// Each point is a mean over the steps since the one before. Where an epoch ends there may be few of
// them, whose mean jumps: less than half of the usual number join the point before.
show::Curve without_short_windows(const show::Curve& curve) {
  double usual = 0, last = 0;
  for (const double step : curve.x) {
    usual = std::max(usual, step - last);
    last = step;
  }
  show::Curve whole{.name = curve.name, .x = {}, .y = {}};
  double begin = 0;  // of the last point's steps
  for (size_t i = 0; i < curve.x.size(); ++i) {
    const double end = whole.x.empty() ? 0 : whole.x.back(), steps = curve.x[i] - end;
    if (!whole.x.empty() && 2 * steps < usual) {
      whole.y.back() += (curve.y[i] - whole.y.back()) * steps / (curve.x[i] - begin);
      whole.x.back() = curve.x[i];
      continue;
    }
    begin = end;
    whole.x.push_back(curve.x[i]);
    whole.y.push_back(curve.y[i]);
  }
  return whole;
}

// Says in the curve's name where it is best.
template <class Better>
show::Curve with_best(show::Curve curve, Better better) {
  if (curve.x.empty()) return curve;
  size_t best = 0;
  for (size_t i = 1; i < curve.y.size(); ++i) {
    if (better(curve.y[i], curve.y[best])) best = i;
  }
  curve.name += fmt::format(", best {:.4g} at step {}", curve.y[best], curve.x[best]);
  return curve;
}

std::vector<Picture> pictures_of(const std::vector<Point>& points, const Options& options) {
  std::vector<Picture> pictures;
  const auto add = [&](const char* name, const char* axis, std::vector<show::Curve> curves,
                       bool log_y) {
    std::erase_if(curves, [](const show::Curve& curve) { return curve.x.empty(); });
    if (curves.empty()) return;
    pictures.push_back({name,
                        std::move(curves),
                        {.title = fs::canonical(options.run).filename().string(),
                         .x_axis = "step",
                         .y_axis = axis,
                         .log_y = log_y}});
  };
  add("", "loss",
      {without_short_windows(curve_of(points, "training", &Point::loss)),
       with_best(curve_of(points, "validation", &Point::valid_loss), std::less())},
      options.log_y);
  add("-score", "score",
      {with_best(curve_of(points, "BLEU", &Point::valid_bleu), std::greater()),
       with_best(curve_of(points, "chrF", &Point::valid_chrf), std::greater())},
      false);
  if (pictures.empty())
    fail(ErrorKind::data, "{}: expected a loss in some line, got none", options.run);
  return pictures;
}

std::vector<Point> read_points(const fs::path& run) {
  std::error_code ignored;
  if (!fs::is_directory(run, ignored)) return train::read_metrics(run);
  const fs::path file = run / train::kMetricsFile;
  if (!fs::exists(file, ignored)) {
    fail(ErrorKind::data,
         "{}: expected the folder of a run, with {} of rapt train in it, got one without",
         run.string(), train::kMetricsFile);
  }
  return train::read_metrics(file);
}

int plot(const Options& options, const Globals& globals) {
  const fs::path out = options.out;
  const std::string ending = out.extension();
  if (!options.out.empty() && ending != ".png" && ending != ".svg")
    fail(ErrorKind::usage, "--out: expected a file that ends in .png or .svg, got {}", options.out);
  const auto color =
      wants_color(globals, Stream::out) ? show::TerminalColor::full : show::TerminalColor::none;
  for (const Picture& picture : pictures_of(read_points(options.run), options)) {
    if (options.out.empty()) {
      print(show::to_terminal(picture.curves, {.color = color, .curve = picture.options}));
      continue;
    }
    fs::path path = out;
    path.replace_filename(out.stem().string() + picture.name + ending);
    ending == ".svg" ? show::write_svg(path, picture.curves, picture.options)
                     : show::write_png(path, picture.curves, picture.options);
    say(globals, "wrote " + path.string(), {{"file", path.string()}});
  }
  return 0;
}

}  // namespace

void add_plot(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("plot", "Draw the loss of a run and its scores, by step");
  verb->add_option("run", options->run, "The folder that train wrote, or its metrics.jsonl")
      ->type_name("RUN")
      ->required();
  verb->add_option("--out", options->out,
                   "A .png or .svg; scores go into a second one with -score before the ending "
                   "(default: as text on standard output)")
      ->type_name("FILE");
  verb->add_flag("--log-scale", options->log_y, "The loss by its logarithm");
  verb->footer("Example:\n  rapt plot model --out curves.png");
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return plot(*options, globals); };
  });
}

}  // namespace rapt::cli
