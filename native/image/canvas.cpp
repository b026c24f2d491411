#include "canvas.h"

#include <algorithm>
#include <cmath>

#include "font.h"

namespace shoal {

namespace {

/// The number of scan lines per row of pixels, for antialiasing.
constexpr int kLines = 4;

}  // namespace

Canvas::Canvas(uint8_t* pixels, int width, int height, int64_t stride)
    : pixels_(pixels),
      width_(width),
      height_(height),
      stride_(stride),
      interface_{},
      coverage_(static_cast<size_t>(width) + 1) {
  static constexpr auto owner_of = [](shoal_canvas* canvas) {
    return reinterpret_cast<Interface*>(canvas)->owner;
  };
  interface_.owner = this;
  interface_.canvas.width = width;
  interface_.canvas.height = height;
  interface_.canvas.fill = [](shoal_canvas* canvas, uint32_t colour) {
    owner_of(canvas)->fill(colour);
  };
  interface_.canvas.polygon = [](shoal_canvas* canvas, const double* points, int count,
                                 uint32_t colour) {
    owner_of(canvas)->polygon(points, count, colour);
  };
  interface_.canvas.disc = [](shoal_canvas* canvas, double x, double y, double radius,
                              uint32_t colour) { owner_of(canvas)->disc(x, y, radius, colour); };
  interface_.canvas.line = [](shoal_canvas* canvas, double x0, double y0, double x1, double y1,
                              double line_width, uint32_t colour) {
    owner_of(canvas)->line(x0, y0, x1, y1, line_width, colour);
  };
  interface_.canvas.text = [](shoal_canvas* canvas, double x, double y, double size,
                              const char* text, uint32_t colour) {
    owner_of(canvas)->text(x, y, size, text, colour);
  };
}

void Canvas::fill(uint32_t colour) {
  for (int y = 0; y < height_; ++y) {
    uint8_t* pixel = pixels_ + y * stride_;
    for (int x = 0; x < width_; ++x, pixel += 3) {
      pixel[0] = static_cast<uint8_t>(colour >> 16);
      pixel[1] = static_cast<uint8_t>(colour >> 8);
      pixel[2] = static_cast<uint8_t>(colour);
    }
  }
}

void Canvas::blend(int x, int y, double coverage, uint32_t colour) {
  uint8_t* pixel = pixels_ + y * stride_ + 3 * x;
  const double share = std::min(coverage, 1.0);
  for (int channel = 0; channel < 3; ++channel) {
    const auto target = static_cast<double>(colour >> (16 - 8 * channel) & 0xff);
    const double mixed = pixel[channel] + (target - pixel[channel]) * share;
    pixel[channel] = static_cast<uint8_t>(std::lround(mixed));
  }
}

/// Adds the coverage of the pixels between two points of a scan line.
void Canvas::add_span(double from, double to, double weight) {
  from = std::max(from, 0.0);
  to = std::min(to, static_cast<double>(width_));
  if (!(from < to)) return;
  const auto first = static_cast<size_t>(from), last = static_cast<size_t>(to);
  if (first == last) {
    coverage_[first] += (to - from) * weight;
    return;
  }
  coverage_[first] += (static_cast<double>(first + 1) - from) * weight;
  for (size_t x = first + 1; x < last; ++x) coverage_[x] += weight;
  coverage_[last] += (to - static_cast<double>(last)) * weight;
}

void Canvas::polygon(const double* points, int count, uint32_t colour) {
  double top = height_, bottom = 0.0, left = width_, right = 0.0;
  for (int k = 0; k < count; ++k) {
    if (!std::isfinite(points[2 * k]) || !std::isfinite(points[2 * k + 1])) return;
    left = std::min(left, points[2 * k]);
    right = std::max(right, points[2 * k]);
    top = std::min(top, points[2 * k + 1]);
    bottom = std::max(bottom, points[2 * k + 1]);
  }
  const int first = std::max(0, static_cast<int>(std::floor(std::max(top, 0.0))));
  const int last = static_cast<int>(std::ceil(std::min<double>(bottom, height_)));
  const int from = static_cast<int>(std::max(left, 0.0));
  const int to = static_cast<int>(std::ceil(std::min<double>(right, width_)));
  for (int y = first; y < last; ++y) {
    std::fill(coverage_.begin() + from, coverage_.begin() + std::max(from, to) + 1, 0.0);
    for (int line = 0; line < kLines; ++line) {
      const double height = y + (line + 0.5) / kLines;
      crossings_.clear();
      for (int k = 0; k < count; ++k) {
        const double* one = points + 2 * k;
        const double* other = points + 2 * ((k + 1) % count);
        if ((one[1] <= height) == (other[1] <= height)) continue;
        crossings_.push_back(one[0] +
                             (height - one[1]) * (other[0] - one[0]) / (other[1] - one[1]));
      }
      std::sort(crossings_.begin(), crossings_.end());
      for (size_t k = 0; k + 1 < crossings_.size(); k += 2) {
        add_span(crossings_[k], crossings_[k + 1], 1.0 / kLines);
      }
    }
    for (int x = from; x < to; ++x) {
      if (coverage_[static_cast<size_t>(x)] > 0.0) {
        blend(x, y, coverage_[static_cast<size_t>(x)], colour);
      }
    }
  }
}

void Canvas::disc(double x, double y, double radius, uint32_t colour) {
  if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(radius)) return;
  auto clamped = [](double value, int limit) {
    return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(limit)));
  };
  const int top = clamped(std::floor(y - radius - 1.0), height_);
  const int bottom = clamped(std::ceil(y + radius + 1.0), height_);
  const int left = clamped(std::floor(x - radius - 1.0), width_);
  const int right = clamped(std::ceil(x + radius + 1.0), width_);
  for (int row = top; row < bottom; ++row) {
    for (int column = left; column < right; ++column) {
      const double inside = radius + 0.5 - std::hypot(column + 0.5 - x, row + 0.5 - y);
      if (inside > 0.0) blend(column, row, inside, colour);
    }
  }
}

void Canvas::line(double x0, double y0, double x1, double y1, double width, uint32_t colour) {
  const double length = std::hypot(x1 - x0, y1 - y0);
  if (!(length > 0.0)) return;
  const double across_x = (y0 - y1) / length * width / 2, across_y = (x1 - x0) / length * width / 2;
  const double corners[] = {x0 + across_x, y0 + across_y, x1 + across_x, y1 + across_y,
                            x1 - across_x, y1 - across_y, x0 - across_x, y0 - across_y};
  polygon(corners, 4, colour);
}

void Canvas::text(double x, double y, double size, const char* text, uint32_t colour) {
  const double dot = size / kGlyphRows;
  for (; *text != '\0'; ++text, x += (kGlyphColumns + 1) * dot) {
    const Glyph* glyph = glyph_of(*text);
    if (glyph == nullptr) continue;
    for (int row = 0; row < kGlyphRows; ++row) {
      for (int column = 0; column < kGlyphColumns; ++column) {
        if (!(glyph->rows[row] >> (kGlyphColumns - 1 - column) & 1)) continue;
        const double left = x + column * dot, top = y + row * dot;
        const double corners[] = {left,       top,       left + dot, top,
                                  left + dot, top + dot, left,       top + dot};
        polygon(corners, 4, colour);
      }
    }
  }
}

}  // namespace shoal
