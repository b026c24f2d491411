// A picture in memory, and the shapes that kernels draw on it, antialiased.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels/shoal_kernel.h"

namespace shoal {

class Canvas {
 public:
  /// Over `height` rows of `width` pixels of three bytes, red, green and blue, `stride` bytes
  /// apart.
  Canvas(uint8_t* pixels, int width, int height, int64_t stride);

  /// This canvas in the form in which kernels know it.
  shoal_canvas& face() { return face_.canvas; }

  void fill(uint32_t colour);
  void polygon(const double* points, int count, uint32_t colour);
  void disc(double x, double y, double radius, uint32_t colour);
  void line(double x0, double y0, double x1, double y1, double width, uint32_t colour);
  void text(double x, double y, double size, const char* text, uint32_t colour);

 private:
  /// The functions of a kernel's canvas find their way back from the first of these to the second.
  struct Face {
    shoal_canvas canvas;
    Canvas* owner;
  };

  void blend(int x, int y, double coverage, uint32_t colour);
  void add_span(double from, double to, double weight);

  uint8_t* pixels_;
  int width_, height_;
  int64_t stride_;
  Face face_;
  std::vector<double> coverage_;   // of the pixels of one row
  std::vector<double> crossings_;  // of a shape's edges with one line
};

}  // namespace shoal
