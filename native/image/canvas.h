// An RGB image in memory with antialiased drawing functions.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels/shoal_kernel.h"

namespace shoal {

class Canvas {
 public:
  /// Draws on `height` rows of `width` pixels of three bytes (red, green, blue); rows are `stride`
  /// bytes apart.
  Canvas(uint8_t* pixels, int width, int height, int64_t stride);

  /// The C interface of this canvas, for kernels.
  shoal_canvas& interface() { return interface_.canvas; }

  void fill(uint32_t colour);
  void polygon(const double* points, int count, uint32_t colour);
  void disc(double x, double y, double radius, uint32_t colour);
  void line(double x0, double y0, double x1, double y1, double width, uint32_t colour);
  void text(double x, double y, double size, const char* text, uint32_t colour);

 private:
  /// The functions of `canvas` cast its address to an Interface to find the owner.
  struct Interface {
    shoal_canvas canvas;
    Canvas* owner;
  };

  void blend(int x, int y, double coverage, uint32_t colour);
  void add_span(double from, double to, double weight);

  uint8_t* pixels_;
  int width_, height_;
  int64_t stride_;
  Interface interface_;
  std::vector<double> coverage_;   // the coverage of the pixels of one row by a shape
  std::vector<double> crossings_;  // the crossings of a shape's edges with one scan line
};

}  // namespace shoal
