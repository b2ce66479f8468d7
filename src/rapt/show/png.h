// Figures as PNG: fonts of the machine, and pixels. For sources only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/show/figure.h"

namespace rapt::show {

class Image;

// Where Debian's packages put fonts; the first that has a character draws it.
std::vector<std::string> known_font_files();

// The fonts that labels are drawn with: the file that RAPT_FONT names, then those of `files` that
// are there. Throws Error where RAPT_FONT names no font, and where there is none at all.
class Fonts {
 public:
  explicit Fonts(const std::vector<std::string>& files = known_font_files());
  ~Fonts();
  Fonts(const Fonts&) = delete;
  Fonts& operator=(const Fonts&) = delete;

  // The width of a text of size 1. Throws Error for an East Asian character that no font has.
  double width(std::u32string_view text) const;

  // Draws a label, all its lengths in pixels.
  void draw(const Label& label, Image& image) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The bytes of a PNG file. Throws Error for pictures of more than a quarter of a thousand million
// pixels.
std::string png_of(const Figure& figure, const Fonts& fonts);

}  // namespace rapt::show
