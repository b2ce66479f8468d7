#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_OUTLINE_H

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numbers>
#include <vector>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/show/characters.h"
#include "rapt/show/image.h"
#include "rapt/show/png.h"

namespace rapt::show {
namespace {

constexpr const char* kPackage = "fonts-wqy-microhei";
constexpr int kMetricSize = 1000;  // pixels at which widths are measured

double pixels(FT_Pos position) { return static_cast<double>(position) / 64; }
FT_Pos position(double pixels) { return static_cast<FT_Pos>(std::lround(pixels * 64)); }

void check(FT_Error error, const char* what) {
  if (error != 0) fail(ErrorKind::failure, "fonts: FreeType cannot {} (error {})", what, error);
}

// The coverage of an outline, laid on the image: the bitmap's corner stands at (left, top).
void lay(const FT_Bitmap& bitmap, int64_t left, int64_t top, Color color, Image& image) {
  for (unsigned y = 0; y < bitmap.rows; ++y) {
    const unsigned char* row = bitmap.buffer + static_cast<std::ptrdiff_t>(y) * bitmap.pitch;
    for (unsigned x = 0; x < bitmap.width; ++x) image.blend(left + x, top + y, color, row[x]);
  }
}

}  // namespace

struct Fonts::State {
  ~State() {
    for (const FT_Face face : faces) FT_Done_Face(face);
    FT_Done_FreeType(library);
  }

  // The face that draws a character; the first, with its empty box, where none has it.
  FT_Face face_of(char32_t character) const {
    for (const FT_Face face : faces) {
      if (FT_Get_Char_Index(face, character) != 0) return face;
    }
    if (columns_of(character) == 2) {
      fail(ErrorKind::failure,
           "fonts: no font has the character '{}' (U+{:04X}); install one (apt install {}) or name "
           "one "
           "in RAPT_FONT",
           encode_utf8(std::u32string_view(&character, 1)), static_cast<uint32_t>(character),
           kPackage);
    }
    return faces[0];
  }

  // The glyph of a character as an outline of `size` pixels, unscaled by any transform.
  FT_GlyphSlot load(char32_t character, double size) const {
    const FT_Face face = face_of(character);
    check(FT_Set_Char_Size(face, 0, position(size), 72, 72), "set a size");
    const FT_UInt glyph = FT_Get_Char_Index(face, character);
    check(FT_Load_Glyph(face, glyph, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP), "load a character");
    return face->glyph;
  }

  FT_Library library = nullptr;
  std::vector<FT_Face> faces;
};

std::vector<std::string> known_font_files() {
  return {
      "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",                  // fonts-dejavu-core
      "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",  // fonts-liberation
      "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",              // fonts-noto-core
      "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",                   // fonts-wqy-microhei
      "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",           // fonts-noto-cjk
      "/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc",                     // fonts-wqy-zenhei
      "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",        // fonts-droid-fallback
  };
}

Fonts::Fonts(const std::vector<std::string>& files) : state_(std::make_unique<State>()) {
  check(FT_Init_FreeType(&state_->library), "start");
  const auto add = [&](const char* path) {
    FT_Face face = nullptr;
    if (FT_New_Face(state_->library, path, 0, &face) != 0) return false;
    if (!FT_IS_SCALABLE(face)) {
      FT_Done_Face(face);
      return false;
    }
    state_->faces.push_back(face);
    return true;
  };
  const char* own = std::getenv("RAPT_FONT");
  if (own != nullptr && *own != '\0' && !add(own)) {
    fail(ErrorKind::failure, "fonts: RAPT_FONT names {}, which is no font that can be scaled", own);
  }
  for (const std::string& file : files) {
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) add(file.c_str());
  }
  if (state_->faces.empty()) {
    fail(ErrorKind::failure,
         "fonts: none found to write labels with; install one (apt install {}) or name a font file "
         "in "
         "RAPT_FONT",
         kPackage);
  }
}

Fonts::~Fonts() = default;

double Fonts::width(std::u32string_view text) const {
  double width = 0;
  for (const char32_t character : text) {
    width += pixels(state_->load(character, kMetricSize)->advance.x) / kMetricSize;
  }
  return width;
}

void Fonts::draw(const Label& label, Image& image) const {
  const double radians = label.angle * std::numbers::pi / 180;
  const double cosine = std::cos(radians), sine = std::sin(radians);
  const double before = label.anchor == Anchor::start    ? 0
                        : label.anchor == Anchor::middle ? 0.5
                                                         : 1;
  double along = before == 0 ? 0 : -before * width(label.text) * label.size;
  const auto fixed = [](double value) {
    return static_cast<FT_Fixed>(std::lround(value * 0x10000));
  };
  const FT_Matrix turn{fixed(cosine), fixed(-sine), fixed(sine), fixed(cosine)};
  for (const char32_t character : label.text) {
    const FT_GlyphSlot glyph = state_->load(character, label.size);
    const double advance = pixels(glyph->advance.x);
    if (label.bold) FT_Outline_Embolden(&glyph->outline, position(label.size / 28));
    FT_Outline_Transform(&glyph->outline, &turn);
    // FreeType's y grows upwards. Whole pixels go to the bitmap's place, the rest into the outline.
    const double x = label.x + along * cosine, y = -label.y + along * sine;
    FT_Outline_Translate(&glyph->outline, position(x - std::floor(x)), position(y - std::floor(y)));
    check(FT_Render_Glyph(glyph, FT_RENDER_MODE_NORMAL), "draw a character");
    lay(glyph->bitmap, static_cast<int64_t>(std::floor(x)) + glyph->bitmap_left,
        -static_cast<int64_t>(std::floor(y)) - glyph->bitmap_top, label.color, image);
    along += advance;
  }
}

}  // namespace rapt::show
