// rapt plot: the curves of a run.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
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
      {curve_of(points, "training", &Point::loss),
       curve_of(points, "validation", &Point::valid_loss)},
      options.log_y);
  add("-score", "score",
      {curve_of(points, "BLEU", &Point::valid_bleu), curve_of(points, "chrF", &Point::valid_chrf)},
      false);
  if (pictures.empty())
    fail(ErrorKind::data, "{}: expected a loss in some line, got none", options.run);
  return pictures;
}

int plot(const Options& options, const Globals& globals) {
  const fs::path out = options.out;
  const std::string ending = out.extension();
  if (!options.out.empty() && ending != ".png" && ending != ".svg")
    fail(ErrorKind::usage, "--out: expected a file that ends in .png or .svg, got {}", options.out);
  std::error_code ignored;
  const fs::path run = options.run;
  const auto points =
      train::read_metrics(fs::is_directory(run, ignored) ? run / train::kMetricsFile : run);
  for (const Picture& picture : pictures_of(points, options)) {
    if (options.out.empty()) {
      print(show::to_terminal(picture.curves,
                              {.color = show::TerminalColor::none, .curve = picture.options}));
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
