#include "rapt/show/curves.h"

#include <cmath>

#include "rapt/base/file.h"
#include "rapt/show/characters.h"
#include "rapt/show/curves_layout.h"
#include "tests/testing/testing.h"

namespace rapt::show {
namespace {

using testing::error_of;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> texts_of(const std::vector<Tick>& ticks) {
  std::vector<std::string> texts;
  for (const Tick& tick : ticks) texts.push_back(tick.text);
  return texts;
}

Curve falling(const std::string& name, size_t points) {
  Curve curve{name, {}, {}};
  for (size_t i = 0; i < points; ++i) {
    curve.x.push_back(static_cast<double>(i));
    curve.y.push_back(2.5 * std::exp(-static_cast<double>(i) / 20));
  }
  return curve;
}

TEST(Scale, TicksAreRoundNumbersWithinTheRange) {
  EXPECT_EQ(texts_of(Scale(0, 100, false).ticks(5)),
            (std::vector<std::string>{"0", "20", "40", "60", "80", "100"}));
  EXPECT_EQ(texts_of(Scale(0.13, 0.42, false).ticks(3)),
            (std::vector<std::string>{"0.2", "0.3", "0.4"}));
  EXPECT_EQ(texts_of(Scale(-1, 1, false).ticks(4)),
            (std::vector<std::string>{"-1", "-0.5", "0", "0.5", "1"}));
  EXPECT_EQ(texts_of(Scale(0.01, 100, true).ticks(4)),
            (std::vector<std::string>{"0.01", "0.1", "1", "10", "100"}));
  EXPECT_EQ(texts_of(Scale(0.9, 6, true).ticks(6)), (std::vector<std::string>{"1", "2", "5"}));
  EXPECT_EQ(texts_of(Scale(2.8, 9, true).ticks(6)),
            (std::vector<std::string>{"3", "4", "5", "6", "8"}));
  EXPECT_EQ(texts_of(Scale(2.8, 3.4, true).ticks(3)),
            (std::vector<std::string>{"2.8", "3", "3.2", "3.4"}));
  EXPECT_NEAR(Scale(0, 100, false).ticks(5)[1].at, 0.2, 1e-12);
  EXPECT_NEAR(Scale(0.01, 100, true).ticks(4)[1].at, 0.25, 1e-12);
}

TEST(Scale, PlacesLieBetweenZeroAndOne) {
  EXPECT_EQ(Scale(2, 4, false).place(3), 0.5);
  EXPECT_EQ(Scale(1, 100, true).place(10), 0.5);
  EXPECT_EQ(Scale(1, 100, true).place(0), std::nullopt);
  EXPECT_EQ(Scale(1, 100, false).place(NAN), std::nullopt);
  EXPECT_EQ(Scale(7, 7, false).place(7), 0.5);  // a single value stands in the middle
}

TEST(Curves, GapsBreakTheLine) {
  const Curve curve{"loss", {0, 1, 2, 3, 4}, {1, 2, NAN, 2, 3}};
  const Figure figure = curves_layout(std::span(&curve, 1), {}, estimated_width);
  ASSERT_EQ(figure.lines.size(), 2u);
  EXPECT_EQ(figure.lines[0].points.size(), 2u);
  EXPECT_EQ(figure.lines[1].points.size(), 2u);
  const double right = figure.lines[1].points[1].first, left = figure.lines[0].points[0].first;
  EXPECT_DOUBLE_EQ(figure.lines[0].points[1].first, left + (right - left) / 4);
  EXPECT_LT(figure.lines[1].points[1].second, figure.lines[0].points[0].second);  // upwards
}

TEST(Curves, EveryPartLiesOnThePicture) {
  for (const size_t count : {1u, 2u, 9u}) {
    std::vector<Curve> curves;
    for (size_t c = 0; c < count; ++c)
      curves.push_back(falling("run " + std::to_string(c) + " of several", 50 + c));
    const CurveOptions options{.title = "loss by step", .x_axis = "step", .y_axis = "loss"};
    const Figure figure = curves_layout(curves, options, estimated_width);
    for (const Polyline& line : figure.lines) {
      for (const auto& [x, y] : line.points)
        EXPECT_TRUE(x > 0 && x < figure.width && y > 0 && y < figure.height);
    }
    for (const Label& label : figure.labels) {
      EXPECT_TRUE(label.x > 0 && label.x < figure.width && label.y > 0 && label.y < figure.height);
    }
  }
}

TEST(Curves, FilesAreWritten) {
  const testing::TemporaryFolder folder;
  const std::vector<Curve> curves = {falling("training", 50), falling("<validation>", 20)};
  write_svg(folder.path() / "a.svg", curves);
  EXPECT_TRUE(holds(read_file(folder.path() / "a.svg"), "&lt;validation&gt;"));
  write_png(folder.path() / "a.png", curves);
  EXPECT_TRUE(read_file(folder.path() / "a.png").starts_with("\x89PNG"));
}

TEST(Curves, TerminalShowsDotsOnAxes) {
  const Curve curve{"loss", {0, 10}, {0, 4}};
  const std::string text = to_terminal(
      std::span(&curve, 1),
      {.color = TerminalColor::none, .width = 24, .height = 7, .curve = {.x_axis = "step"}});
  EXPECT_EQ(text,
            "4 ┤                ⣀⡠⠔⠒⠉\n"
            "2 ┤          ⢀⣀⠤⠒⠊⠉     \n"
            "  │     ⣀⡠⠤⠒⠉⠁          \n"
            "0 ┤⣀⠤⠔⠊⠉                \n"
            "  └─────────────────────\n"
            "   0         5        10\n"
            "   → step  \n");
}

TEST(Curves, AreToldApartWithoutColor) {
  const std::vector<Curve> curves = {{"a", {0, 10}, {0, 0}}, {"b", {0, 10}, {4, 4}}};
  const std::string text =
      to_terminal(curves, {.color = TerminalColor::none, .width = 24, .height = 7});
  EXPECT_TRUE(holds(text, "⠉⠁ ⠉⠁")) << text;
  EXPECT_TRUE(holds(text, "⣀⣀⣀⣀⣀⣀")) << text;
  EXPECT_TRUE(holds(text, "── a  ╌╌ b")) << text;
}

TEST(Curves, WhatCannotBeShownIsRefused) {
  const auto refusal = [](const Curve& curve, bool log = false) {
    return error_of([&] { to_terminal(std::span(&curve, 1), {.curve = {.log_y = log}}); });
  };
  EXPECT_TRUE(holds(refusal({"a", {}, {}}), "no point to show"));
  EXPECT_TRUE(holds(refusal({"a", {1}, {NAN}}), "no point to show"));
  EXPECT_TRUE(holds(refusal({"a", {1}, {0}}, true), "no point to show"));
  EXPECT_TRUE(holds(refusal({"a", {1, 2}, {1}}), "'a': expected 2 values of y, got 1"));
  EXPECT_TRUE(holds(refusal({"a", {2, 1}, {1, 1}}), "expected x that ascend, got 1 at point 1"));
}

}  // namespace
}  // namespace rapt::show
