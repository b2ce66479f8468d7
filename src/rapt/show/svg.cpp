#include <fmt/format.h>

#include <cmath>

#include "rapt/base/utf8.h"
#include "rapt/show/characters.h"
#include "rapt/show/figure.h"

namespace rapt::show {
namespace {

constexpr std::string_view kFonts =
    "'DejaVu Sans','Noto Sans','WenQuanYi Micro Hei','Noto Sans CJK SC','PingFang SC',"
    "'Microsoft YaHei',sans-serif";

std::string hex(Color color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

// A coordinate with at most two decimals.
std::string number(double value) {
  const double rounded = std::round(value * 100) / 100;
  return fmt::format("{}", rounded == 0 ? 0.0 : rounded);
}

std::string escaped(std::u32string_view text) {
  std::string result;
  for (const char c : encode_utf8(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string_view anchor_name(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

std::string element(const Label& label) {
  std::string style;
  if (label.anchor != Anchor::start) {
    style += fmt::format(" text-anchor=\"{}\"", anchor_name(label.anchor));
  }
  if (label.bold) style += " font-weight=\"bold\"";
  if (label.angle != 0) {
    style += fmt::format(" transform=\"rotate({} {} {})\"", number(-label.angle), number(label.x),
                         number(label.y));
  }
  return fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}>{}</text>\n",
                     number(label.x), number(label.y), number(label.size), hex(label.color), style,
                     escaped(label.text));
}

std::string element(const Polyline& line) {
  std::string points;
  for (const auto& [x, y] : line.points) points += number(x) + "," + number(y) + " ";
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
      "stroke-linejoin=\"round\"/>\n",
      points, hex(line.color), number(line.width));
}

// Neighbours of one color in a row become one element.
void write_rectangles(const std::vector<Rectangle>& rectangles, std::string& svg) {
  for (size_t i = 0; i < rectangles.size();) {
    Rectangle run = rectangles[i];
    for (++i; i < rectangles.size(); ++i) {
      const Rectangle& next = rectangles[i];
      if (!(next.color == run.color) || next.y != run.y || next.height != run.height ||
          next.x != run.x + run.width) {
        break;
      }
      run.width += next.width;
    }
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                       number(run.x), number(run.y), number(run.width), number(run.height),
                       hex(run.color));
  }
}

}  // namespace

double estimated_width(std::u32string_view text) {
  constexpr std::u32string_view narrow = U" iljftrI.,:;'|!()[]{}\"", wide = U"mwMW@%&\u2026";
  double width = 0;
  for (const char32_t c : text) {
    const int columns = columns_of(c);
    width += columns != 1                                  ? columns / 2.0
             : narrow.find(c) != std::u32string_view::npos ? 0.42
             : wide.find(c) != std::u32string_view::npos   ? 1.0
             : c >= U'A' && c <= U'Z'                      ? 0.76
                                                           : 0.65;
  }
  return width;
}

std::string svg_of(const Figure& figure) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"{2}\" xml:space=\"preserve\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<g "
      "shape-rendering=\"crispEdges\">\n",
      number(figure.width), number(figure.height), kFonts);
  write_rectangles(figure.rectangles, svg);
  svg += "</g>\n";
  for (const Polyline& line : figure.lines) svg += element(line);
  for (const Label& label : figure.labels) svg += element(label);
  return svg + "</svg>\n";
}

}  // namespace rapt::show
