#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/show/characters.h"
#include "rapt/show/curves_layout.h"

namespace rapt::show {
namespace {

// A field of Braille characters: two dots across and four down in each.
class Dots {
 public:
  Dots(int64_t columns, int64_t lines)
      : columns_(columns), lines_(lines), cells_(static_cast<size_t>(columns * lines)) {}

  // The place of a value in dots, across and down.
  double across(double part) const { return part * static_cast<double>(columns_ * 2 - 1); }
  double down(double part) const { return (1 - part) * static_cast<double>(lines_ * 4 - 1); }

  void line(double x0, double y0, double x1, double y1, size_t curve, bool dashed) {
    const auto steps =
        static_cast<int64_t>(std::ceil(std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1.0})));
    for (int64_t i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / static_cast<double>(steps);
      if (dashed && drawn_++ % kDash >= kDash / 2) continue;
      dot(std::llround(x0 + (x1 - x0) * part), std::llround(y0 + (y1 - y0) * part), curve);
    }
  }

  std::string text(int64_t line, TerminalColor color) const {
    std::string text;
    for (int64_t c = 0; c < columns_; ++c) {
      const Cell& cell = cells_[static_cast<size_t>(line * columns_ + c)];
      if (cell.dots == 0) {
        text += ' ';
        continue;
      }
      const std::string braille = encode_utf8(std::u32string(1, U'\u2800' + cell.dots));
      text +=
          color == TerminalColor::none ? braille : start(cell.curve, color) + braille + "\x1b[0m";
    }
    return text;
  }

  // The sequence that turns on a curve's color.
  static std::string start(size_t curve, TerminalColor color) {
    if (color == TerminalColor::indexed) {
      constexpr int numbers[] = {39, 208, 36, 175, 214, 117, 250};
      return fmt::format("\x1b[38;5;{}m", numbers[curve % std::size(numbers)]);
    }
    const Color ink = curve_color(curve);
    if (ink == Color{}) return "\x1b[39m";  // black: the terminal's own
    return fmt::format("\x1b[38;2;{};{};{}m", ink.red, ink.green, ink.blue);
  }

 private:
  struct Cell {
    char32_t dots = 0;
    size_t curve = 0;
  };

  void dot(int64_t x, int64_t y, size_t curve) {
    // Dots 1 2 3 7 stand in the left column, 4 5 6 8 in the right one.
    constexpr char32_t bits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    Cell& cell = cells_[static_cast<size_t>(y / 4 * columns_ + x / 2)];
    cell.dots |= bits[x % 2][y % 4];
    cell.curve = curve;
  }

  static constexpr int64_t kDash = 6;  // dots of a dash and of the gap behind it

  int64_t columns_, lines_, drawn_ = 0;
  std::vector<Cell> cells_;
};

void draw(const Curve& curve, size_t index, const Scales& scales, bool dashed, Dots& dots) {
  std::optional<std::pair<double, double>> last;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    const auto across = scales.x.place(curve.x[i]), up = scales.y.place(curve.y[i]);
    if (!across || !up) {
      last.reset();
      continue;
    }
    const std::pair point(dots.across(*across), dots.down(*up));
    const auto from = last.value_or(point);
    dots.line(from.first, from.second, point.first, point.second, index, dashed);
    last = point;
  }
}

// The labels below: each tick's text about its place, where there is room.
std::string tick_line(const std::vector<Tick>& ticks, int64_t columns) {
  std::string line(static_cast<size_t>(columns), ' ');
  int64_t used = 0;
  for (const Tick& tick : ticks) {
    const auto size = static_cast<int64_t>(tick.text.size());
    const int64_t begin = std::clamp<int64_t>(
        std::llround(tick.at * static_cast<double>(columns - 1)) - size / 2, 0, columns - size);
    if (begin < used) continue;
    line.replace(static_cast<size_t>(begin), tick.text.size(), tick.text);
    used = begin + size + 1;
  }
  return line;
}

}  // namespace

std::string to_terminal(std::span<const Curve> curves, const CurveTerminalOptions& options) {
  const Scales scales = scales_of(curves, options.curve);
  RAPT_CHECK(options.width >= 24 && options.height >= 6,
             "curves: expected at least 24 columns and 6 lines, got {} and {}", options.width,
             options.height);
  std::string text;
  const auto titled = [&](const std::string& title) {
    return encode_utf8(shortened(printable(title), options.width));
  };
  if (!options.curve.title.empty()) text += titled(options.curve.title) + "\n";
  const int64_t lines = options.height - 3;
  const std::vector<Tick> up = scales.y.ticks(static_cast<int>(std::max<int64_t>(2, lines / 3)));
  int64_t label = 0;
  for (const Tick& tick : up) label = std::max(label, static_cast<int64_t>(tick.text.size()));
  const int64_t columns = std::max<int64_t>(4, options.width - label - 2);
  Dots dots(columns, lines);
  // Without colors every other curve is dashed.
  const bool plain = options.color == TerminalColor::none;
  for (size_t c = 0; c < curves.size(); ++c) draw(curves[c], c, scales, plain && c % 2 == 1, dots);
  for (int64_t line = 0; line < lines; ++line) {
    std::string tick_text;
    for (const Tick& tick : up) {
      if (static_cast<int64_t>(dots.down(tick.at)) / 4 == line) tick_text = tick.text;
    }
    text += fmt::format("{:>{}} {}{}\n", tick_text, label, tick_text.empty() ? "│" : "┤",
                        dots.text(line, options.color));
  }
  text += fmt::format("{:>{}} └", "", label);
  for (int64_t c = 0; c < columns; ++c) text += "─";
  text += fmt::format(
      "\n{:>{}}{}\n", "", label + 2,
      tick_line(scales.x.ticks(static_cast<int>(std::max<int64_t>(2, columns / 12))), columns));
  std::string legend;
  for (size_t c = 0; c < curves.size() && curves.size() > 1; ++c) {
    const std::string dash = c % 2 == 0 ? "──" : "╌╌";
    const std::string mark = plain ? dash : Dots::start(c, options.color) + "━━\x1b[0m";
    legend += mark + " " + encode_utf8(printable(curves[c].name)) + "  ";
  }
  if (!options.curve.y_axis.empty())
    legend += "↑ " + encode_utf8(printable(options.curve.y_axis)) + "  ";
  if (!options.curve.x_axis.empty())
    legend += "→ " + encode_utf8(printable(options.curve.x_axis)) + "  ";
  return legend.empty() ? text : text + fmt::format("{:>{}}{}\n", "", label + 2, legend);
}

}  // namespace rapt::show
