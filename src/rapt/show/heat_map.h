// Heat maps of attention: which key each query looks at, with the tokens on both axes, as PNG, SVG
// and in the terminal.
//
// Sizes: R rows (queries), C columns (keys) of a map.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rapt/tensor/tensor.h"

namespace rapt::show {

struct HeatMap {
  std::string title;
  std::vector<std::string> row_labels;  // R
  std::vector<std::string> col_labels;  // C
  std::vector<float> values;            // (R, C)
};

// One map a head, titled "head 0" and on, of one sentence of captured weights.
// weights: f32 or f64 (B, H, Tq, Tk). The labels are those of the sentence's tokens; rows and
// columns beyond them, which a shorter sentence of a batch leaves, are not shown. Throws Error for
// more labels than rows or columns, a sentence outside the batch, another rank or type.
std::vector<HeatMap> head_maps(const Tensor& weights, int64_t sentence,
                               const std::vector<std::string>& row_labels,
                               const std::vector<std::string>& col_labels);

struct HeatMapOptions {
  std::string title{};     // over the whole picture
  std::string row_axis{};  // what rows are: "target"
  std::string col_axis{};  // what columns are: "source"
  int columns = 0;         // maps side by side; 0: as the page is filled best
  float low = 0;           // the values at the ends of the color bar; values beyond take its ends
  float high = 1;
};

// All of these throw Error for no maps at all, a map without rows or columns, values that are not R
// x C or not finite, and low >= high. Labels are drawn character by character from left to right;
// control characters become visible.

// A picture file, whole or not at all. Labels are drawn with fonts of the machine: the file that
// RAPT_FONT names, then DejaVu, Liberation, Noto, WenQuanYi. Throws Error naming the Debian package
// to install where there is no font, or none that has an East Asian character of a label.
void write_png(const std::filesystem::path& path, std::span<const HeatMap> maps,
               const HeatMapOptions& options = {});

// The same picture as SVG, which needs no font here: the viewer has them.
void write_svg(const std::filesystem::path& path, std::span<const HeatMap> maps,
               const HeatMapOptions& options = {});

enum class TerminalColor { none, indexed, full };  // no color, 256 colors, 24 bits

struct TerminalOptions {
  TerminalColor color = TerminalColor::full;
  int width = 80;        // columns; wider maps continue below
  HeatMapOptions map{};  // `columns` does not matter: maps stand below each other
};

// The maps as lines of text, each ended by \n.
std::string to_terminal(std::span<const HeatMap> maps, const TerminalOptions& options = {});

}  // namespace rapt::show
