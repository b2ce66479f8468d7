#include "rapt/show/color_map.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace rapt::show {
namespace {

// Ten colors of the map at even distances; between them it is nearly straight.
constexpr Color kStops[] = {{0x44, 0x01, 0x54}, {0x48, 0x28, 0x78}, {0x3e, 0x49, 0x89},
                            {0x31, 0x68, 0x8e}, {0x26, 0x82, 0x8e}, {0x1f, 0x9e, 0x89},
                            {0x35, 0xb7, 0x79}, {0x6e, 0xce, 0x58}, {0xb5, 0xde, 0x2b},
                            {0xfd, 0xe7, 0x25}};

uint8_t between(uint8_t low, uint8_t high, double part) {
  return static_cast<uint8_t>(std::lround(low + (high - low) * part));
}

// The light that a channel of sRGB gives.
double linear(uint8_t channel) {
  const double value = channel / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

}  // namespace

Color viridis(double value) {
  const double place = std::clamp(value, 0.0, 1.0) * (std::size(kStops) - 1);
  const auto low = std::min(static_cast<size_t>(place), std::size(kStops) - 2);
  const double part = place - static_cast<double>(low);
  return mixed(kStops[low], kStops[low + 1], part);
}

Color mixed(Color from, Color to, double part) {
  return {between(from.red, to.red, part), between(from.green, to.green, part),
          between(from.blue, to.blue, part)};
}

Color readable_on(Color background) {
  const double light = 0.2126 * linear(background.red) + 0.7152 * linear(background.green) +
                       0.0722 * linear(background.blue);
  // The contrast of WCAG with black is the greater one above this light.
  return light > 0.179 ? Color{0, 0, 0} : Color{255, 255, 255};
}

}  // namespace rapt::show
