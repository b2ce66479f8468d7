#include "rapt/show/png.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "rapt/base/check.h"
#include "rapt/show/image.h"

namespace rapt::show {
namespace {

constexpr double kMostPixels = 256e6;

// Two pixels a unit, for sharp letters; one where the picture is huge.
int64_t scale_of(const Figure& figure) { return figure.width * figure.height > 12e6 ? 1 : 2; }

void paint(const Rectangle& rectangle, double scale, Image& image) {
  const auto pixel = [&](double at) { return static_cast<int64_t>(std::llround(at * scale)); };
  const int64_t right = pixel(rectangle.x + rectangle.width);
  const int64_t bottom = pixel(rectangle.y + rectangle.height);
  for (int64_t y = pixel(rectangle.y); y < bottom; ++y) {
    for (int64_t x = pixel(rectangle.x); x < right; ++x) image.blend(x, y, rectangle.color, 255);
  }
}

// The distance from (x, y) to the stretch between two points.
double distance(double x, double y, const std::pair<double, double>& a,
                const std::pair<double, double>& b) {
  const double dx = b.first - a.first, dy = b.second - a.second;
  const double length = dx * dx + dy * dy;
  const double along = length > 0 ? ((x - a.first) * dx + (y - a.second) * dy) / length : 0;
  const double part = std::clamp(along, 0.0, 1.0);
  return std::hypot(x - a.first - part * dx, y - a.second - part * dy);
}

// The pixels that a line may touch.
struct Box {
  int64_t left, top, right, bottom;  // the last two are beyond it
  int64_t width() const { return right - left; }
};

template <class Points>
Box box_of(const Points& points, double reach, const Image& image) {
  double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
  for (const auto& [x, y] : points) {
    left = std::min(left, x - reach), right = std::max(right, x + reach);
    top = std::min(top, y - reach), bottom = std::max(bottom, y + reach);
  }
  const auto within = [](double at, int64_t size) {
    return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(size)));
  };
  return {within(std::floor(left), image.width()), within(std::floor(top), image.height()),
          within(std::ceil(right) + 1, image.width()),
          within(std::ceil(bottom) + 1, image.height())};
}

// A stroke with round ends: each pixel is covered by its distance from the line's edge.
void paint(const Polyline& line, double scale, Image& image) {
  std::vector<std::pair<double, double>> points;  // by the centers of pixels
  for (const auto& [x, y] : line.points) points.emplace_back(x * scale - 0.5, y * scale - 0.5);
  const double radius = line.width * scale / 2;
  const Box whole = box_of(points, radius + 1, image);
  std::vector<uint8_t> coverage(
      static_cast<size_t>(whole.width() * std::max<int64_t>(0, whole.bottom - whole.top)));
  const auto at = [&](int64_t x, int64_t y) -> uint8_t& {
    return coverage[static_cast<size_t>((y - whole.top) * whole.width() + x - whole.left)];
  };
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const Box box = box_of(std::span(points).subspan(i, 2), radius + 1, image);
    for (int64_t y = box.top; y < box.bottom; ++y) {
      for (int64_t x = box.left; x < box.right; ++x) {
        const double inside =
            radius + 0.5 -
            distance(static_cast<double>(x), static_cast<double>(y), points[i], points[i + 1]);
        const auto cover = static_cast<uint8_t>(std::lround(255 * std::clamp(inside, 0.0, 1.0)));
        at(x, y) = std::max(at(x, y), cover);
      }
    }
  }
  for (int64_t y = whole.top; y < whole.bottom; ++y) {
    for (int64_t x = whole.left; x < whole.right; ++x) {
      if (at(x, y) > 0) image.blend(x, y, line.color, at(x, y));
    }
  }
}

std::string encoded(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width());
  header.height = static_cast<png_uint_32>(image.height());
  header.format = PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(header), '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.bytes().data(), 0,
                                nullptr) == 0) {
    fail(ErrorKind::failure, "png: {}", header.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::string png_of(const Figure& figure, const Fonts& fonts) {
  const int64_t scale = scale_of(figure);
  const double width = std::ceil(figure.width) * static_cast<double>(scale),
               height = std::ceil(figure.height) * static_cast<double>(scale);
  RAPT_CHECK(
      width * height <= kMostPixels,
      "png: a picture of {:.0f} x {:.0f} pixels is too large; show fewer maps at once or write SVG",
      width, height);
  Image image(static_cast<int64_t>(width), static_cast<int64_t>(height));
  for (const Rectangle& rectangle : figure.rectangles)
    paint(rectangle, static_cast<double>(scale), image);
  for (const Polyline& line : figure.lines) paint(line, static_cast<double>(scale), image);
  for (Label label : figure.labels) {
    label.x *= static_cast<double>(scale);
    label.y *= static_cast<double>(scale);
    label.size *= static_cast<double>(scale);
    fonts.draw(label, image);
  }
  return encoded(image);
}

}  // namespace rapt::show
