#include "rapt/show/heat_map.h"

#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/show/heat_map_layout.h"
#include "rapt/show/png.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::show {

std::vector<HeatMap> head_maps(const Tensor& weights, int64_t sentence,
                               const std::vector<std::string>& row_labels,
                               const std::vector<std::string>& col_labels) {
  RAPT_CHECK(weights.rank() == 4, "heat map: expected weights (B, H, Tq, Tk), got {}",
             weights.shape().text());
  const int64_t B = weights.dim(0), H = weights.dim(1), Tq = weights.dim(2), Tk = weights.dim(3);
  RAPT_CHECK(sentence >= 0 && sentence < B, "heat map: expected a sentence below {}, got {}", B,
             sentence);
  const auto R = static_cast<int64_t>(row_labels.size()),
             C = static_cast<int64_t>(col_labels.size());
  RAPT_CHECK(R <= Tq && C <= Tk, "heat map: expected at most {} x {} labels, got {} x {}", Tq, Tk,
             R, C);
  std::vector<HeatMap> maps;
  dispatch_float(weights.dtype(), "heat map", [&](auto type) {
    const auto* data = weights.data<decltype(type)>() + sentence * weights.row_stride();
    for (int64_t h = 0; h < H; ++h) {
      HeatMap map{fmt::format("head {}", h), row_labels, col_labels, {}};
      for (int64_t r = 0; r < R; ++r) {
        const auto* row = data + (h * Tq + r) * Tk;
        for (int64_t c = 0; c < C; ++c) map.values.push_back(static_cast<float>(row[c]));
      }
      maps.push_back(std::move(map));
    }
  });
  return maps;
}

void check_maps(std::span<const HeatMap> maps, const HeatMapOptions& options) {
  RAPT_CHECK(!maps.empty(), "heat map: there is nothing to show");
  RAPT_CHECK(options.low < options.high, "heat map: expected low < high, got {} and {}",
             options.low, options.high);
  for (const HeatMap& map : maps) {
    const size_t R = map.row_labels.size(), C = map.col_labels.size();
    RAPT_CHECK(R > 0 && C > 0, "heat map '{}': expected rows and columns, got {} x {}", map.title,
               R, C);
    RAPT_CHECK(map.values.size() == R * C, "heat map '{}': expected {} x {} values, got {}",
               map.title, R, C, map.values.size());
    for (size_t i = 0; i < map.values.size(); ++i) {
      RAPT_CHECK(std::isfinite(map.values[i]),
                 "heat map '{}': row {}, column {}: expected a number, got {}", map.title, i / C,
                 i % C, map.values[i]);
    }
  }
}

void write_png(const std::filesystem::path& path, std::span<const HeatMap> maps,
               const HeatMapOptions& options) {
  check_maps(maps, options);
  Fonts fonts;
  const auto width = [&](std::u32string_view text) { return fonts.width(text); };
  write_file(path, png_of(heat_map_layout(maps, options, width), fonts));
}

void write_svg(const std::filesystem::path& path, std::span<const HeatMap> maps,
               const HeatMapOptions& options) {
  check_maps(maps, options);
  write_file(path, svg_of(heat_map_layout(maps, options, estimated_width)));
}

}  // namespace rapt::show
