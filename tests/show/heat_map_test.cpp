#include "rapt/show/heat_map.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "rapt/base/file.h"
#include "rapt/base/utf8.h"
#include "rapt/show/characters.h"
#include "rapt/show/color_map.h"
#include "rapt/show/heat_map_layout.h"
#include "rapt/show/png.h"
#include "tests/testing/testing.h"

namespace rapt::show {
namespace {

using testing::error_of;
using testing::TemporaryFolder;
using Words = std::vector<std::string>;

const Words kSource = {"我", "有", "零", "个", "女", "朋", "友"};
const Words kTarget = {"i", "have", "zero", "girl", "friend", "."};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Value i of R x C is i / (R C).
HeatMap ramp(const std::string& title, const Words& rows, const Words& columns) {
  HeatMap map{title, rows, columns, {}};
  const size_t count = rows.size() * columns.size();
  for (size_t i = 0; i < count; ++i) {
    map.values.push_back(static_cast<float>(i) / static_cast<float>(count));
  }
  return map;
}

Words many(size_t count) {
  const Words words = {"the", "Donaudampfschifffahrt", "of",    "人工智能",
                       "a",   "international",         "Männer"};
  Words result;
  for (size_t i = 0; i < count; ++i) result.push_back(words[i % words.size()]);
  return result;
}

struct Picture {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> bytes;
  Color at(double x, double y) const {  // of a place in units, two pixels each
    const auto i = static_cast<size_t>((std::llround(y * 2) * width + std::llround(x * 2)) * 3);
    return {bytes.at(i), bytes.at(i + 1), bytes.at(i + 2)};
  }
};

Picture decoded(const std::string& png) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&header, png.data(), png.size()), 0);
  header.format = PNG_FORMAT_RGB;
  Picture picture{header.width, header.height, std::vector<uint8_t>(PNG_IMAGE_SIZE(header))};
  EXPECT_NE(png_image_finish_read(&header, nullptr, picture.bytes.data(), 0, nullptr), 0);
  return picture;
}

// The four corners of a label.
std::vector<std::pair<double, double>> corners(const Label& label, double width_of_one) {
  const double width = width_of_one * label.size, angle = label.angle * M_PI / 180;
  const double begin = label.anchor == Anchor::start ? 0
                       : label.anchor == Anchor::end ? -width
                                                     : -width / 2;
  std::vector<std::pair<double, double>> points;
  for (const double along : {begin, begin + width}) {
    for (const double up : {-0.2 * label.size, 0.75 * label.size}) {
      points.emplace_back(label.x + along * std::cos(angle) - up * std::sin(angle),
                          label.y - along * std::sin(angle) - up * std::cos(angle));
    }
  }
  return points;
}

TEST(HeatMap, EveryPartLiesOnThePictureAndCellsDoNotOverlap) {
  const Fonts fonts;
  const auto width = [&](std::u32string_view text) { return fonts.width(text); };
  struct Case {
    size_t rows, columns, maps;
  };
  for (const auto [R, C, count] : {Case{1, 1, 1},
                                   {6, 7, 1},
                                   {6, 7, 8},
                                   {50, 50, 1},
                                   {50, 50, 3},
                                   {1, 40, 4},
                                   {40, 1, 4},
                                   {300, 300, 1}}) {
    const std::vector<HeatMap> maps(count,
                                    ramp("a title that is longer than a cell", many(R), many(C)));
    const HeatMapOptions options{.title = "layer", .row_axis = "target", .col_axis = "source"};
    const Figure figure = heat_map_layout(maps, options, width);
    for (const Label& label : figure.labels) {
      for (const auto& [x, y] : corners(label, fonts.width(label.text))) {
        EXPECT_TRUE(x >= 0 && x <= figure.width && y >= 0 && y <= figure.height)
            << encode_utf8(label.text) << " at " << x << ", " << y << " of " << figure.width
            << " x " << figure.height;
      }
    }
    ASSERT_GE(figure.rectangles.size(), R * C * count);
    for (const Rectangle& cell : figure.rectangles) {
      EXPECT_TRUE(cell.x >= 0 && cell.x + cell.width <= figure.width && cell.y >= 0 &&
                  cell.y + cell.height <= figure.height);
    }
    const Rectangle first = figure.rectangles[0];
    for (size_t i = 1; i < R * C; ++i) {  // of the first map
      const Rectangle& cell = figure.rectangles[i];
      EXPECT_EQ(std::floor((cell.x - first.x) / first.width + 1e-9) >= static_cast<double>(i % C),
                true);
      EXPECT_EQ(std::floor((cell.y - first.y) / first.height + 1e-9) >= static_cast<double>(i / C),
                true);
    }
  }
}

TEST(HeatMap, NoLabelLiesOnAnother) {
  const Fonts fonts;
  const auto width = [&](std::u32string_view text) { return fonts.width(text); };
  const HeatMapOptions options{.title = "layer", .row_axis = "target", .col_axis = "source"};
  for (const size_t count : {1u, 2u, 8u}) {
    std::vector<HeatMap> maps(count, ramp("head 0", kTarget, kSource));
    const Figure figure = heat_map_layout(maps, options, width);
    for (size_t i = 0; i < figure.labels.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const Label &a = figure.labels[i], &b = figure.labels[j];
        const auto p = corners(a, fonts.width(a.text)), q = corners(b, fonts.width(b.text));
        const auto apart = [](double low, double high, double other_low, double other_high) {
          return std::max(low, high) <= std::min(other_low, other_high) ||
                 std::max(other_low, other_high) <= std::min(low, high);
        };
        EXPECT_TRUE(apart(p[0].first, p[3].first, q[0].first, q[3].first) ||
                    apart(p[0].second, p[3].second, q[0].second, q[3].second))
            << encode_utf8(a.text) << " and " << encode_utf8(b.text);
      }
    }
  }
}

TEST(HeatMap, BothAxesShowEveryToken) {
  const std::vector<HeatMap> maps = {ramp("head 0", kTarget, kSource),
                                     ramp("head 1", kTarget, kSource)};
  const Figure figure = heat_map_layout(maps, {}, estimated_width);
  const auto count = [&](const std::string& text) {
    return std::count_if(figure.labels.begin(), figure.labels.end(),
                         [&](const Label& label) { return encode_utf8(label.text) == text; });
  };
  for (const Words& words : {kSource, kTarget}) {
    for (const std::string& word : words) EXPECT_EQ(count(word), 2) << word;
  }
  EXPECT_EQ(count("head 0"), 1);
  EXPECT_EQ(count("0.02"), 2);  // 1 / 42, in its cell
}

TEST(HeatMap, LabelsThatAreTooWideAreTurned) {
  const auto angle = [](const Words& columns) {
    const std::vector<HeatMap> maps = {ramp("", {"a"}, columns)};
    const Figure figure = heat_map_layout(maps, {}, estimated_width);
    for (const Label& label : figure.labels) {
      if (encode_utf8(label.text) == columns[0]) return label.angle;
    }
    return -1.0;
  };
  EXPECT_EQ(angle(kSource), 0);
  EXPECT_EQ(angle({"international", "of"}), 45);
  EXPECT_EQ(angle(Words(90, "international")), 90);
}

TEST(HeatMap, PngHasTheColorsOfTheValues) {
  const TemporaryFolder folder;
  const std::vector<HeatMap> maps = {ramp("", kTarget, kSource)};
  write_png(folder.path() / "a.png", maps);
  const Picture picture = decoded(read_file(folder.path() / "a.png"));
  const Fonts fonts;
  const Figure figure =
      heat_map_layout(maps, {}, [&](std::u32string_view text) { return fonts.width(text); });
  EXPECT_EQ(picture.width, std::llround(figure.width * 2));
  for (size_t i = 0; i < 42; ++i) {
    const Rectangle& cell = figure.rectangles[i];
    EXPECT_EQ(picture.at(cell.x + 2, cell.y + 2), viridis(maps[0].values[i])) << i;
  }
  EXPECT_EQ(picture.at(1, 1), (Color{255, 255, 255}));
}

// The share of a label's surroundings that is not white.
double ink(const std::string& label) {
  const Fonts fonts;
  Figure figure;
  figure.width = figure.height = 40;
  figure.labels.push_back({4, 30, printable(label), 30, {}, Anchor::start, 0, false});
  const Picture picture = decoded(png_of(figure, fonts));
  return static_cast<double>(std::count_if(picture.bytes.begin(), picture.bytes.end(),
                                           [](uint8_t byte) { return byte < 128; })) /
         static_cast<double>(picture.bytes.size());
}

TEST(HeatMap, EastAsianLabelsAreDrawn) {
  EXPECT_EQ(ink(" "), 0);
  EXPECT_GT(ink("友"), 0.03);
  EXPECT_GT(ink("零"), ink("一") * 2);
}

TEST(HeatMap, TurnedLabelsGoUpwards) {
  const Fonts fonts;
  Figure figure;
  figure.width = figure.height = 100;
  figure.labels.push_back({50, 90, U"HHHH", 20, {}, Anchor::start, 90, false});
  const Picture picture = decoded(png_of(figure, fonts));
  int above = 0, beside = 0;
  for (double y = 0; y < 99; ++y) {
    for (double x = 0; x < 99; ++x) {
      const bool dark = picture.at(x, y).red < 128;
      (x > 34 && x <= 50 && y > 20 && y <= 90 ? above : beside) += dark ? 1 : 0;
    }
  }
  EXPECT_GT(above, 100);
  EXPECT_EQ(beside, 0);
}

TEST(HeatMap, MissingFontsNameThePackage) {
  EXPECT_TRUE(holds(error_of([] { Fonts fonts(std::vector<std::string>{}); }),
                    "apt install fonts-wqy-microhei"));
  EXPECT_TRUE(holds(error_of([] { Fonts fonts({"/nowhere/font.ttf"}); }),
                    "apt install fonts-wqy-microhei"));
  const Fonts latin({"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"});
  EXPECT_TRUE(holds(
      error_of([&] { latin.width(U"友"); }),
      "no font has the character '友' (U+53CB); install one (apt install fonts-wqy-microhei)"));
  setenv("RAPT_FONT", "/etc/passwd", 1);
  EXPECT_TRUE(
      holds(error_of([] { Fonts fonts; }), "RAPT_FONT names /etc/passwd, which is no font"));
  setenv("RAPT_FONT", "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", 1);
  EXPECT_GT(Fonts(std::vector<std::string>{}).width(U"友"), 0.9);
  unsetenv("RAPT_FONT");
}

TEST(HeatMap, SvgEscapesTextAndControls) {
  const TemporaryFolder folder;
  const std::vector<HeatMap> maps = {
      ramp("<a> & \"b\"", {"</text>\x01", "\xff", std::string("\0", 1)}, {"\u2028", "\x1b[2J"})};
  write_svg(folder.path() / "a.svg", maps);
  const std::string svg = read_file(folder.path() / "a.svg");
  EXPECT_TRUE(holds(svg, "&lt;a&gt; &amp; \"b\"</text>"));
  EXPECT_TRUE(holds(svg, ">&lt;/text&gt;\u2401</text>"));
  EXPECT_TRUE(holds(svg, ">\uFFFD</text>"));
  EXPECT_TRUE(holds(svg, ">\u2400</text>"));
  EXPECT_TRUE(holds(svg, ">\u241B[2J</text>"));
  for (const char c : svg) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(HeatMap, WhatCannotBeShownIsRefused) {
  const auto refusal = [](const std::vector<HeatMap>& maps, const HeatMapOptions& options = {}) {
    return error_of([&] { to_terminal(maps, {.map = options}); });
  };
  EXPECT_TRUE(holds(refusal({}), "nothing to show"));
  EXPECT_TRUE(holds(refusal({{"t", {}, {"a"}, {}}}), "expected rows and columns, got 0 x 1"));
  EXPECT_TRUE(holds(refusal({{"t", {"a"}, {"a"}, {1, 2}}}), "'t': expected 1 x 1 values, got 2"));
  EXPECT_TRUE(holds(refusal({{"t", {"a"}, {"a", "b"}, {1, NAN}}}), "row 0, column 1"));
  EXPECT_TRUE(holds(refusal({{"t", {"a"}, {"a"}, {1}}}, {.low = 1}), "expected low < high"));
  error_of([] { to_terminal(std::vector<HeatMap>{{"t", {"a"}, {"a"}, {1}}}, {.width = 0}); });
}

TEST(HeatMap, FailedWriteLeavesTheOldPicture) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.svg";
  write_file(path, "old");
  set_file_fault([](std::string_view operation, const std::filesystem::path&) {
    return operation == "write" ? ENOSPC : 0;
  });
  error_of([&] { write_svg(path, std::vector{ramp("", kTarget, kSource)}); });
  set_file_fault(nullptr);
  EXPECT_EQ(read_file(path), "old");
}

TEST(HeatMap, HeadsAreTakenFromCapturedWeights) {
  std::vector<float> values(2 * 3 * 2 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor weights = Tensor::from(values, {2, 3, 2, 4});
  const auto maps = head_maps(weights, 1, {"a", "b"}, {"x", "y", "z"});
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[2].title, "head 2");
  EXPECT_EQ(maps[2].values, (std::vector<float>{40, 41, 42, 44, 45, 46}));
  EXPECT_EQ(head_maps(weights.to(DType::f64), 0, {"a"}, {"x"})[1].values, (std::vector<float>{8}));
  EXPECT_TRUE(
      holds(error_of([&] { head_maps(weights, 2, {"a"}, {"x"}); }), "expected a sentence below 2"));
  EXPECT_TRUE(holds(error_of([&] {
                      head_maps(weights, 0, {"a", "b", "c"}, {"x"});
                    }),
                    "at most 2 x 4 labels, got 3 x 1"));
  error_of([&] { head_maps(weights.reshape({2, 3, 8}), 0, {"a"}, {"x"}); });
}

}  // namespace
}  // namespace rapt::show
