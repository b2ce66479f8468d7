#include "rapt/show/curves.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/show/characters.h"
#include "rapt/show/curves_layout.h"
#include "rapt/show/png.h"

namespace rapt::show {
namespace {

constexpr Color kInk = {0x1f, 0x23, 0x28}, kFaint = {0x6b, 0x72, 0x80}, kGrid = {0xe5, 0xe7, 0xeb};
constexpr double kWidth = 640, kHeight = 360, kMargin = 24, kSize = 11.5, kMiddle = 0.36;

// The runs of points between gaps, as polylines in the box with the corner (x, y).
std::vector<Polyline> lines_of(const Curve& curve, const Scales& scales, double x, double y,
                               Color color) {
  std::vector<Polyline> lines;
  bool open = false;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    const auto across = scales.x.place(curve.x[i]), up = scales.y.place(curve.y[i]);
    if (!across || !up) {
      open = false;
      continue;
    }
    if (!open) lines.push_back({{}, 2, color});
    open = true;
    lines.back().points.emplace_back(x + *across * kWidth, y + (1 - *up) * kHeight);
  }
  for (Polyline& line : lines) {
    if (line.points.size() == 1) line.points.push_back(line.points[0]);  // a dot
  }
  return lines;
}

// Names of the curves in their colors, below the picture; returns the height that they take.
double add_legend(std::span<const Curve> curves, double x, double y, const TextWidth& text_width,
                  Figure& figure) {
  const double begin = x;
  double height = kSize * 2;
  for (size_t c = 0; c < curves.size(); ++c) {
    const std::u32string name = shortened(printable(curves[c].name), 40);
    const double width = 22 + text_width(name) * kSize + 20;
    if (x > begin && x + width > begin + kWidth) {
      x = begin;
      y += kSize * 1.8;
      height += kSize * 1.8;
    }
    figure.lines.push_back({{{x, y}, {x + 16, y}}, 2, curve_color(c)});
    figure.labels.push_back(
        {x + 22, y + kMiddle * kSize, name, kSize, kInk, Anchor::start, 0, false});
    x += width;
  }
  return height;
}

}  // namespace

Color curve_color(size_t curve) {
  // The palette of Okabe and Ito (2008), told apart also by the colour-blind; without its yellow.
  constexpr std::array<Color, 7> colors = {{{0x00, 0x72, 0xb2},
                                            {0xd5, 0x5e, 0x00},
                                            {0x00, 0x9e, 0x73},
                                            {0xcc, 0x79, 0xa7},
                                            {0xe6, 0x9f, 0x00},
                                            {0x56, 0xb4, 0xe9},
                                            {0x00, 0x00, 0x00}}};
  return colors[curve % colors.size()];
}

Figure curves_layout(std::span<const Curve> curves, const CurveOptions& options,
                     const TextWidth& text_width) {
  const Scales scales = scales_of(curves, options);
  const std::vector<Tick> across = scales.x.ticks(8), up = scales.y.ticks(6);
  Figure figure;
  double widest = 0;
  for (const Tick& tick : up) widest = std::max(widest, text_width(printable(tick.text)) * kSize);
  const double x = std::ceil(kMargin + (options.y_axis.empty() ? 0 : kSize + 10) + widest + 8);
  const double y = kMargin + (options.title.empty() ? 0 : 34);
  const double bottom = y + kHeight;
  if (!options.title.empty()) {
    figure.labels.push_back(
        {x, kMargin + 13, printable(options.title), 15, kInk, Anchor::start, 0, true});
  }
  for (const Tick& tick : up) {
    const double at = std::round(bottom - tick.at * kHeight);
    figure.rectangles.push_back({x, at, kWidth, 1, kGrid});
    figure.labels.push_back(
        {x - 8, at + kMiddle * kSize, printable(tick.text), kSize, kInk, Anchor::end, 0, false});
  }
  figure.rectangles.push_back({x, bottom, kWidth, 1, kFaint});
  for (const Tick& tick : across) {
    const double at = std::round(x + tick.at * kWidth);
    figure.rectangles.push_back({at, bottom, 1, 5, kFaint});
    figure.labels.push_back(
        {at, bottom + 8 + kSize, printable(tick.text), kSize, kInk, Anchor::middle, 0, false});
  }
  double below = bottom + 8 + kSize;
  if (!options.x_axis.empty()) {
    below += 10 + kSize;
    figure.labels.push_back({x + kWidth / 2, below, printable(options.x_axis), kSize, kFaint,
                             Anchor::middle, 0, false});
  }
  if (!options.y_axis.empty()) {
    figure.labels.push_back({kMargin + kSize * 0.8, y + kHeight / 2, printable(options.y_axis),
                             kSize, kFaint, Anchor::middle, 90, false});
  }
  for (size_t c = 0; c < curves.size(); ++c) {
    for (Polyline& line : lines_of(curves[c], scales, x, y, curve_color(c)))
      figure.lines.push_back(std::move(line));
  }
  if (curves.size() > 1) below += 16 + add_legend(curves, x, below + 20, text_width, figure);
  const double title_end = x + 15 * 1.1 * text_width(printable(options.title));
  figure.width = std::ceil(std::max(x + kWidth, title_end) + kMargin + 12);
  figure.height = std::ceil(below + kMargin);
  return figure;
}

void write_png(const std::filesystem::path& path, std::span<const Curve> curves,
               const CurveOptions& options) {
  Fonts fonts;
  const auto width = [&](std::u32string_view text) { return fonts.width(text); };
  write_file(path, png_of(curves_layout(curves, options, width), fonts));
}

void write_svg(const std::filesystem::path& path, std::span<const Curve> curves,
               const CurveOptions& options) {
  write_file(path, svg_of(curves_layout(curves, options, estimated_width)));
}

}  // namespace rapt::show
