// A picture as a list of what is on it, before it becomes pixels or SVG. For sources only.
//
// Lengths are in units: CSS pixels in SVG, two pixels in PNG. x grows to the right, y downwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::show {

struct Color {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Color&) const = default;
};

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
  Color color;
};

enum class Anchor { start, middle, end };

// A line of text. (x, y) is a point of its baseline: the start, the middle or the end. `angle`
// turns it about that point, in degrees against the clock.
struct Label {
  double x = 0, y = 0;
  std::u32string text;
  double size = 12;
  Color color;
  Anchor anchor = Anchor::start;
  double angle = 0;
  bool bold = false;
};

struct Polyline {
  std::vector<std::pair<double, double>> points;
  double width = 1;
  Color color;
};

struct Figure {
  double width = 0, height = 0;
  std::vector<Rectangle> rectangles;  // painted first, in order
  std::vector<Polyline> lines;
  std::vector<Label> labels;
};

// The width of a text of size 1.
using TextWidth = std::function<double(std::u32string_view)>;

// Without a font: after the common widths of a sans-serif, rather too wide than too narrow.
double estimated_width(std::u32string_view text);

std::string svg_of(const Figure& figure);

}  // namespace rapt::show
