#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/show/characters.h"
#include "rapt/show/color_map.h"
#include "rapt/show/heat_map.h"
#include "rapt/show/heat_map_layout.h"

namespace rapt::show {
namespace {

constexpr int64_t kRowLabel = 20;     // columns; longer row labels are cut
constexpr int64_t kColumnLabel = 12;  // the same of column labels
constexpr int64_t kNumber = 4;        // columns of "0.62"
constexpr int64_t kBlock = 2;         // columns of a cell without number

std::string spaces(int64_t count) {
  return std::string(static_cast<size_t>(std::max<int64_t>(count, 0)), ' ');
}

// Ten of the 256 colors that terminals number, as near to viridis as they come without greys.
struct Indexed {
  int number;
  Color color;
};
constexpr Indexed kIndexed[] = {{53, {95, 0, 95}},   {54, {95, 0, 135}},    {24, {0, 95, 135}},
                                {30, {0, 135, 135}}, {36, {0, 175, 135}},   {72, {95, 175, 135}},
                                {77, {95, 215, 95}}, {113, {135, 215, 95}}, {148, {175, 215, 0}},
                                {226, {255, 255, 0}}};

class Writer {
 public:
  explicit Writer(const TerminalOptions& options) : options_(options) {}

  std::string lines(std::span<const HeatMap> maps) {
    if (!options_.map.title.empty()) line(bold(options_.map.title));
    for (const HeatMap& map : maps) {
      if (!map.title.empty()) line(bold(map.title));
      add(map);
      line("");
    }
    add_scale();
    return std::move(text_);
  }

 private:
  struct Table {
    const HeatMap& map;
    std::vector<std::u32string> rows, columns;
    int64_t label = 0;     // columns of the row labels
    int64_t cell = 0;      // columns of a cell
    bool numbers = false;  // cells show their value, column labels lie
  };

  bool colored() const { return options_.color != TerminalColor::none; }

  void line(const std::string& content) { text_ += content + "\n"; }

  std::string bold(const std::string& title) const {
    const std::string text = encode_utf8(printable(title));
    return colored() ? "\x1b[1m" + text + "\x1b[0m" : text;
  }

  static double part(float value, const HeatMapOptions& options) {
    return std::clamp((static_cast<double>(value) - options.low) /
                          (static_cast<double>(options.high) - options.low),
                      0.0, 1.0);
  }

  // `content` on the color of `part`, or in shades of one color where there are none.
  std::string painted(double part, const std::string& content) const {
    if (options_.color == TerminalColor::full) {
      const Color back = viridis(part), ink = readable_on(back);
      return fmt::format("\x1b[48;2;{};{};{};38;2;{};{};{}m{}", back.red, back.green, back.blue,
                         ink.red, ink.green, ink.blue, content);
    }
    const Indexed& back = kIndexed[std::lround(part * (std::size(kIndexed) - 1))];
    const int ink = readable_on(back.color).red == 0 ? 16 : 231;
    return fmt::format("\x1b[48;5;{};38;5;{}m{}", back.number, ink, content);
  }

  static std::string shade(double part) {
    constexpr std::array<std::string_view, 5> shades = {" ", "\u2591", "\u2592", "\u2593",
                                                        "\u2588"};
    return std::string(shades[static_cast<size_t>(std::lround(part * 4))]);
  }

  void add(const HeatMap& map) {
    Table table{map, {}, {}};
    int64_t widest = 0;
    for (const std::string& label : map.row_labels) {
      table.rows.push_back(shortened(printable(label), kRowLabel));
      table.label = std::max(table.label, columns_of(table.rows.back()));
    }
    for (const std::string& label : map.col_labels) {
      table.columns.push_back(shortened(printable(label), kColumnLabel));
      widest = std::max(widest, columns_of(table.columns.back()));
    }
    const auto C = static_cast<int64_t>(table.columns.size());
    table.cell = std::max(kNumber, widest) + (colored() ? 2 : 1);
    table.numbers = table.label + 1 + C * table.cell <= options_.width;
    if (!table.numbers) table.cell = kBlock;
    const int64_t fitting = std::max<int64_t>(1, (options_.width - table.label - 1) / table.cell);
    for (int64_t begin = 0; begin < C; begin += fitting) {
      if (begin > 0) line("");
      add(table, begin, std::min(begin + fitting, C));
    }
  }

  // The columns [begin, end) of a map.
  void add(const Table& table, int64_t begin, int64_t end) {
    if (table.numbers) {
      add_lying_labels(table, begin, end);
    } else {
      add_standing_labels(table, begin, end);
    }
    const auto C = table.columns.size();
    for (size_t r = 0; r < table.rows.size(); ++r) {
      std::string row =
          spaces(table.label - columns_of(table.rows[r])) + encode_utf8(table.rows[r]) + " ";
      for (auto c = static_cast<size_t>(begin); std::cmp_less(c, end); ++c) {
        row += cell(table, table.map.values[r * C + c]);
      }
      line(colored() ? row + "\x1b[0m" : row);
    }
  }

  std::string cell(const Table& table, float value) const {
    const double at = part(value, options_.map);
    if (!table.numbers) return colored() ? painted(at, spaces(kBlock)) : shade(at) + shade(at);
    const std::string number = fmt::format("{:.2f}", value);
    const int64_t room = table.cell - static_cast<int64_t>(number.size());
    const std::string content = spaces(room - room / 2) + number + spaces(room / 2);
    return colored() ? painted(at, content) : content;
  }

  void add_lying_labels(const Table& table, int64_t begin, int64_t end) {
    std::string header = spaces(table.label + 1);
    for (auto c = static_cast<size_t>(begin); std::cmp_less(c, end); ++c) {
      const int64_t room = table.cell - columns_of(table.columns[c]);
      header += spaces(room - room / 2) + encode_utf8(table.columns[c]) + spaces(room / 2);
    }
    line(header);
  }

  // Column labels from top to bottom, a character a line, ending above the cells.
  void add_standing_labels(const Table& table, int64_t begin, int64_t end) {
    size_t height = 0;
    for (auto c = static_cast<size_t>(begin); std::cmp_less(c, end); ++c) {
      height = std::max(height, standing(table.columns[c]).size());
    }
    for (size_t y = 0; y < height; ++y) {
      std::string row = spaces(table.label + 1);
      for (auto c = static_cast<size_t>(begin); std::cmp_less(c, end); ++c) {
        const std::vector<std::u32string> characters = standing(table.columns[c]);
        const size_t above = height - characters.size();
        const std::u32string shown = y < above ? U"" : characters[y - above];
        row += encode_utf8(shown) + spaces(kBlock - columns_of(shown));
      }
      line(row);
    }
  }

  // A label's characters, each with the marks that belong to it.
  static std::vector<std::u32string> standing(const std::u32string& label) {
    std::vector<std::u32string> characters;
    for (const char32_t character : label) {
      if (columns_of(character) > 0 || characters.empty()) {
        characters.emplace_back();
      }
      characters.back() += character;
    }
    return characters;
  }

  // What the colors mean, and the axes.
  void add_scale() {
    const int64_t steps = colored() ? 32 : 5;
    std::string bar;
    for (int64_t i = 0; i < steps; ++i) {
      const double at = static_cast<double>(i) / static_cast<double>(steps - 1);
      bar += colored() ? painted(at, " ") : shade(at) + shade(at);
    }
    if (colored()) bar += "\x1b[0m";
    std::string legend = fmt::format("{:.3g} {} {:.3g}", options_.map.low, bar, options_.map.high);
    if (!options_.map.row_axis.empty())
      legend += "   \u2193 " + encode_utf8(printable(options_.map.row_axis));
    if (!options_.map.col_axis.empty())
      legend += "   \u2192 " + encode_utf8(printable(options_.map.col_axis));
    line(legend);
  }

  const TerminalOptions& options_;
  std::string text_;
};

}  // namespace

std::string to_terminal(std::span<const HeatMap> maps, const TerminalOptions& options) {
  check_maps(maps, options.map);
  RAPT_CHECK(options.width > 0, "heat map: expected a width above 0, got {}", options.width);
  return Writer(options).lines(maps);
}

}  // namespace rapt::show
