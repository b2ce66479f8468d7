// The axes of curves and a picture of them. For sources only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rapt/show/curves.h"
#include "rapt/show/figure.h"

namespace rapt::show {

struct Tick {
  double at = 0;  // 0 to 1 along the axis
  std::string text;
};

// One axis: a range of values, linear or by the logarithm, and ticks at round numbers.
class Scale {
 public:
  Scale(double low, double high, bool log);

  // The place of a value, 0 to 1 from one end to the other; nothing for gaps.
  std::optional<double> place(double value) const;
  std::vector<Tick> ticks(int about) const;

 private:
  std::vector<Tick> ticks_at(std::span<const double> factors) const;
  std::vector<Tick> linear_ticks(double low, double high, int about) const;

  double low_, high_;  // logarithms on a log axis
  bool log_;
};

struct Scales {
  Scale x, y;
};

// Throws Error as curves.h says.
Scales scales_of(std::span<const Curve> curves, const CurveOptions& options);

// The colors of the curves, in order; they repeat after the last.
Color curve_color(size_t curve);

Figure curves_layout(std::span<const Curve> curves, const CurveOptions& options,
                     const TextWidth& text_width);

}  // namespace rapt::show
