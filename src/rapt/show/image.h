// Pixels. For sources only.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/show/figure.h"

namespace rapt::show {

// A white picture of 8-bit RGB pixels.
class Image {
 public:
  Image(int64_t width, int64_t height)
      : width_(width), height_(height), bytes_(static_cast<size_t>(width * height * 3), 0xFF) {}

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

  // Lays `color` over the pixel, covering it by coverage / 255. Pixels beyond the edges are left
  // out.
  void blend(int64_t x, int64_t y, Color color, int coverage) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    uint8_t* const pixel = bytes_.data() + (y * width_ + x) * 3;
    const uint8_t channels[] = {color.red, color.green, color.blue};
    for (int c = 0; c < 3; ++c) {
      pixel[c] =
          static_cast<uint8_t>((pixel[c] * (255 - coverage) + channels[c] * coverage + 127) / 255);
    }
  }

 private:
  int64_t width_, height_;
  std::vector<uint8_t> bytes_;
};

}  // namespace rapt::show
