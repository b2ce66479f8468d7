#include "rapt/show/heat_map_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rapt/show/characters.h"
#include "rapt/show/color_map.h"

namespace rapt::show {
namespace {

constexpr Color kInk = {0x1f, 0x23, 0x28}, kFaint = {0x6b, 0x72, 0x80};
constexpr double kMargin = 24, kGap = 32, kTitle = 13, kFigureTitle = 16, kAxis = 11;
constexpr double kBarWidth = 12, kBarGap = 28, kTickSize = 10.5;
constexpr double kMiddle = 0.36;  // from the middle of a line of size 1 to its baseline
constexpr int64_t kRowLabel = 24, kColumnLabel = 18;  // columns; longer labels are cut
constexpr double kPageWidth = 1180;                   // that grids fill

double sine_of_45() { return std::numbers::sqrt2 / 2; }

// The labels along one axis: every `stride`-th is shown.
struct Axis {
  std::vector<std::u32string> labels;
  double longest = 0;  // of size 1
  size_t stride = 1;
};

struct Panel {
  const HeatMap* map = nullptr;
  Axis rows, columns;
  double angle = 0;  // of the column labels
  bool names_rows = false, names_columns = false;
  double left = 0, top = 0, right = 0;  // beside the cells: labels, axis names, title
  double cells_width = 0, cells_height = 0;
  double width() const { return left + cells_width + right; }
  double height() const { return top + cells_height; }
};

// All maps of a figure have cells and labels of one size.
struct Sizes {
  double cell = 0;
  double label = 0;
  double gap = 0;        // white between cells
  bool numbers = false;  // values stand in the cells
};

class Layout {
 public:
  Layout(std::span<const HeatMap> maps, const HeatMapOptions& options, const TextWidth& text_width)
      : maps_(maps), options_(options), text_width_(text_width), columns_(grid_columns()) {
    choose_sizes();
    for (size_t i = 0; i < maps_.size(); ++i) panels_.push_back(panel_of(i));
  }

  Figure figure() {
    double y = kMargin;
    if (!options_.title.empty()) {
      text(kMargin, y + kFigureTitle * 0.85, options_.title, kFigureTitle, kInk, Anchor::start, 0,
           true);
      figure_.width = kMargin * 2 + kFigureTitle * 1.1 * text_width_(printable(options_.title));
      y += kFigureTitle + 18;
    }
    const std::vector<double> widths = column_widths();
    const double first_row = y;
    double bar_top = 0, bar_height = 0, right = 0;
    for (size_t begin = 0; begin < panels_.size(); begin += columns_) {
      const size_t end = std::min(begin + columns_, panels_.size());
      double top = 0, height = 0, x = kMargin;
      for (size_t i = begin; i < end; ++i) top = std::max(top, panels_[i].top);
      for (size_t i = begin; i < end; ++i) {
        draw(panels_[i], x + widths[i - begin] - panels_[i].width() + panels_[i].left, y + top);
        x += widths[i - begin] + kGap;
        height = std::max(height, panels_[i].cells_height);
      }
      if (y == first_row) {
        bar_top = y + top;
        bar_height = height;
      }
      right = std::max(right, x - kGap);
      y += top + height + kGap;
    }
    const double bar_bottom =
        draw_bar(right + kBarGap, bar_top, std::clamp(bar_height, 96.0, 260.0));
    figure_.height = std::ceil(std::max(y - kGap, bar_bottom) + kMargin);
    figure_.width = std::ceil(std::max(figure_.width, right + kBarGap + kBarWidth + 42 + kMargin));
    return std::move(figure_);
  }

 private:
  size_t most(bool rows) const {
    size_t count = 0;
    for (const HeatMap& map : maps_) {
      count = std::max(count, (rows ? map.row_labels : map.col_labels).size());
    }
    return count;
  }

  // As near to a page twice as wide as high as the maps allow.
  size_t grid_columns() const {
    if (options_.columns > 0) return std::min(maps_.size(), static_cast<size_t>(options_.columns));
    const double shape = static_cast<double>(most(true)) / static_cast<double>(most(false));
    const double columns =
        std::sqrt(static_cast<double>(maps_.size()) * 2 * std::clamp(shape, 0.25, 4.0));
    const auto whole = static_cast<size_t>(std::ceil(columns - 0.25));
    const size_t bounded = std::clamp<size_t>(whole, 1, maps_.size());
    const size_t lines = (maps_.size() + bounded - 1) / bounded;
    return (maps_.size() + lines - 1) / lines;  // lines of like length
  }

  void choose_sizes() {
    const auto C = static_cast<double>(most(false)), R = static_cast<double>(most(true));
    const double room = columns_ == 1 ? 680 : kPageWidth / static_cast<double>(columns_) - 90;
    const double largest = columns_ == 1 ? 44 : 34;
    sizes_.cell = std::floor(std::clamp(room / std::max(C, R), 1.0, largest));
    if (std::max(C, R) <= 128) sizes_.cell = std::max(sizes_.cell, 11.0);
    sizes_.label = std::clamp(sizes_.cell * 0.62, 8.0, 13.0);
    sizes_.gap = sizes_.cell >= 14 ? 1 : 0;
    sizes_.numbers = sizes_.cell >= 28;
  }

  Axis axis_of(const std::vector<std::string>& labels, int64_t most_columns) const {
    Axis axis;
    axis.stride = static_cast<size_t>(std::ceil(sizes_.label * 1.15 / sizes_.cell));
    for (size_t i = 0; i < labels.size(); ++i) {
      axis.labels.push_back(shortened(printable(labels[i]), most_columns));
      if (i % axis.stride == 0) {
        axis.longest = std::max(axis.longest, text_width_(axis.labels.back()));
      }
    }
    return axis;
  }

  Panel panel_of(size_t index) const {
    const HeatMap& map = maps_[index];
    Panel panel{&map, axis_of(map.row_labels, kRowLabel), axis_of(map.col_labels, kColumnLabel)};
    const double C = static_cast<double>(map.col_labels.size());
    panel.cells_width = sizes_.cell * C;
    panel.cells_height = sizes_.cell * static_cast<double>(map.row_labels.size());
    const double longest = panel.columns.longest * sizes_.label;
    const double step = sizes_.cell * static_cast<double>(panel.columns.stride);
    panel.left = panel.rows.longest * sizes_.label + 8;
    // The axes are named at the edges of the grid only.
    panel.names_rows = !options_.row_axis.empty() && index % columns_ == 0;
    panel.names_columns = !options_.col_axis.empty() && index < columns_;
    if (panel.names_rows) panel.left += kAxis + 8;
    double labels_height = sizes_.label;
    if (longest + 6 > step) {
      panel.angle = step * sine_of_45() >= sizes_.label * 1.05 ? 45 : 90;
      const double sine = panel.angle == 45 ? sine_of_45() : 1;
      labels_height = longest * sine + (panel.angle == 45 ? sizes_.label * sine : 0);
      // A turned label leans over the cells to its right.
      if (panel.angle == 45) panel.right = overhang(panel);
    }
    panel.top = labels_height + 8;
    if (panel.names_columns) panel.top += kAxis + 8;
    if (!map.title.empty()) panel.top += kTitle + 10;
    const double title = kTitle * 1.1 * text_width_(printable(map.title));
    panel.right = std::max(panel.right, (title - panel.cells_width) / 2);
    panel.left = std::max(panel.left, (title - panel.cells_width) / 2);
    return panel;
  }

  // How far the leaning column labels reach beyond the last cell.
  double overhang(const Panel& panel) const {
    double reach = 0;
    for (size_t c = 0; c < panel.columns.labels.size(); ++c) {
      const double begin = (static_cast<double>(c) + 0.5) * sizes_.cell;
      const double end = begin +
                         text_width_(panel.columns.labels[c]) * sizes_.label * sine_of_45() +
                         sizes_.label * 0.5;
      reach = std::max(reach, end - panel.cells_width);
    }
    return reach;
  }

  std::vector<double> column_widths() const {
    std::vector<double> widths(columns_);
    for (size_t i = 0; i < panels_.size(); ++i) {
      widths[i % columns_] = std::max(widths[i % columns_], panels_[i].width());
    }
    return widths;
  }

  void text(double x, double y, std::u32string characters, double size, Color color, Anchor anchor,
            double angle = 0, bool bold = false) {
    figure_.labels.push_back({x, y, std::move(characters), size, color, anchor, angle, bold});
  }
  void text(double x, double y, const std::string& characters, double size, Color color,
            Anchor anchor, double angle = 0, bool bold = false) {
    text(x, y, printable(characters), size, color, anchor, angle, bold);
  }

  // The panel with its first cell at (x, y).
  void draw(const Panel& panel, double x, double y) {
    x = std::round(x);
    y = std::round(y);
    draw_cells(panel, x, y);
    for (size_t r = 0; r < panel.rows.labels.size(); r += panel.rows.stride) {
      const double middle = y + (static_cast<double>(r) + 0.5) * sizes_.cell;
      text(x - 7, middle + kMiddle * sizes_.label, panel.rows.labels[r], sizes_.label, kInk,
           Anchor::end);
    }
    for (size_t c = 0; c < panel.columns.labels.size(); c += panel.columns.stride) {
      draw_column_label(panel, panel.columns.labels[c],
                        x + (static_cast<double>(c) + 0.5) * sizes_.cell, y - 7);
    }
    const double center = x + panel.cells_width / 2;
    double top = y - panel.top;
    if (!panel.map->title.empty()) {
      text(center, top + kTitle * 0.8, panel.map->title, kTitle, kInk, Anchor::middle, 0, true);
      top += kTitle + 10;
    }
    if (panel.names_columns)
      text(center, top + kAxis * 0.7, options_.col_axis, kAxis, kFaint, Anchor::middle);
    if (panel.names_rows) {
      text(x - panel.rows.longest * sizes_.label - 15, y + panel.cells_height / 2,
           options_.row_axis, kAxis, kFaint, Anchor::middle, 90);
    }
  }

  void draw_column_label(const Panel& panel, const std::u32string& label, double x, double y) {
    if (panel.angle == 0) {
      text(x, y, label, sizes_.label, kInk, Anchor::middle);
    } else if (panel.angle == 45) {
      text(x + sizes_.label * 0.2, y, label, sizes_.label, kInk, Anchor::start, 45);
    } else {
      text(x + kMiddle * sizes_.label, y, label, sizes_.label, kInk, Anchor::start, 90);
    }
  }

  void draw_cells(const Panel& panel, double x, double y) {
    const size_t C = panel.columns.labels.size();
    for (size_t i = 0; i < panel.map->values.size(); ++i) {
      const size_t row = i / C, column = i % C;
      const double left = x + static_cast<double>(column) * sizes_.cell;
      const double top = y + static_cast<double>(row) * sizes_.cell;
      const float value = panel.map->values[i];
      const Color color = viridis((value - options_.low) / (options_.high - options_.low));
      const double side = sizes_.cell - sizes_.gap;
      figure_.rectangles.push_back({left, top, side, side, color});
      if (!sizes_.numbers) continue;
      const double size = std::min(11.0, sizes_.cell * 0.3);
      text(left + side / 2, top + side / 2 + kMiddle * size, fmt::format("{:.2f}", value), size,
           number_color(value, color), Anchor::middle);
    }
  }

  // Numbers that round to zero step back, so that the others are seen.
  static Color number_color(float value, Color background) {
    const Color ink = readable_on(background);
    return std::abs(value) < 0.005f ? mixed(background, ink, 0.45) : ink;
  }

  // The color bar with five marks; returns its lower end.
  double draw_bar(double x, double y, double height) {
    x = std::round(x);
    const int steps = 128;
    height = std::round(height * 2) / 2;
    for (int i = 0; i < steps; ++i) {
      const double top = std::round(height * 2 * i / steps) / 2,
                   bottom = std::round(height * 2 * (i + 1) / steps) / 2;
      figure_.rectangles.push_back(
          {x, y + top, kBarWidth, bottom - top, viridis(1 - (i + 0.5) / steps)});
    }
    for (int mark = 0; mark <= 4; ++mark) {
      const double at = y + height * (4 - mark) / 4;
      const double value =
          options_.low + (static_cast<double>(options_.high) - options_.low) * mark / 4;
      figure_.rectangles.push_back({x + kBarWidth, std::round(at * 2) / 2 - 0.5, 4, 1, kFaint});
      text(x + kBarWidth + 8, at + kMiddle * kTickSize, fmt::format("{:.3g}", value), kTickSize,
           kInk, Anchor::start);
    }
    return y + height;
  }

  std::span<const HeatMap> maps_;
  const HeatMapOptions& options_;
  const TextWidth& text_width_;
  size_t columns_;
  Sizes sizes_;
  std::vector<Panel> panels_;
  Figure figure_;
};

}  // namespace

Figure heat_map_layout(std::span<const HeatMap> maps, const HeatMapOptions& options,
                       const TextWidth& text_width) {
  return Layout(maps, options, text_width).figure();
}

}  // namespace rapt::show
