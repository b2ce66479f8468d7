// Curves of a run, such as the loss by step, as PNG, SVG and in the terminal.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rapt/show/heat_map.h"

namespace rapt::show {

struct Curve {
  std::string name;
  std::vector<double> x;  // ascending
  std::vector<double> y;  // as many; a value that is not finite is a gap
};

struct CurveOptions {
  std::string title{};
  std::string x_axis{};  // what x and y are: "step", "loss"
  std::string y_axis{};
  bool log_y = false;  // y by its logarithm; values of 0 and below are gaps
};

// All of these throw Error where no point can be shown, for x and y of unequal length and x that do
// not ascend.

// A picture file, whole or not at all. Fonts as in heat_map.h.
void write_png(const std::filesystem::path& path, std::span<const Curve> curves,
               const CurveOptions& options = {});
void write_svg(const std::filesystem::path& path, std::span<const Curve> curves,
               const CurveOptions& options = {});

struct CurveTerminalOptions {
  TerminalColor color = TerminalColor::full;
  int width = 80;   // columns
  int height = 20;  // lines, labels included
  CurveOptions curve{};
};

// The curves as lines of text in Braille dots, two by four a character, each line ended by \n.
std::string to_terminal(std::span<const Curve> curves, const CurveTerminalOptions& options = {});

}  // namespace rapt::show
