#include "table_drawing.h"

#include <algorithm>

namespace shoal {

namespace {

void rectangle(shoal_canvas* canvas, double x, double y, double width, double height,
               uint32_t colour) {
  const double corners[] = {x, y, x + width, y, x + width, y + height, x, y + height};
  canvas->polygon(canvas, corners, 4, colour);
}

uint32_t ground_of(char cell) {
  switch (cell) {
    case 'H':
      return 0x3c6e91;
    case 'C':
      return 0x4a3f3a;
    case 'G':
      return 0xf6d860;
    case 'S':
      return 0xcfe3c8;
    default:
      return 0xe4f0f8;
  }
}

constexpr int kTownSize = 5;
/// The locations of passengers and destinations: row and column.
constexpr int kPlaces[4][2] = {{0, 0}, {0, 4}, {4, 0}, {4, 3}};
constexpr uint32_t kPlaceColours[4] = {0xe05050, 0x50b050, 0xe0c840, 0x5070e0};
/// The cells with a wall on their right side: row and column.
constexpr int kWalls[6][2] = {{0, 1}, {1, 1}, {3, 0}, {4, 0}, {3, 2}, {4, 2}};

}  // namespace

void draw_grid(shoal_canvas* canvas, int rows, int columns, const char* cells, int64_t agent) {
  const double width = static_cast<double>(canvas->width) / columns;
  const double height = static_cast<double>(canvas->height) / rows;
  const double unit = std::min(width, height);
  canvas->fill(canvas, 0xb4c8e6);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const char cell = cells[row * columns + column];
      const double x = column * width, y = row * height;
      rectangle(canvas, x + 0.5, y + 0.5, width - 1.0, height - 1.0, ground_of(cell));
      if (cell == 'H') canvas->disc(canvas, x + width / 2, y + height / 2, 0.36 * unit, 0x1d3d54);
      if (cell == 'S' || cell == 'G') {
        const char letter[] = {cell, '\0'};
        canvas->text(canvas, x + 0.08 * unit, y + 0.08 * unit, 0.24 * unit, letter, 0x405060);
      }
      if (row * columns + column != agent || cell == 'H') continue;
      canvas->disc(canvas, x + width / 2, y + 0.36 * height, 0.15 * unit, 0xf0b890);
      rectangle(canvas, x + width / 2 - 0.17 * unit, y + 0.5 * height, 0.34 * unit, 0.32 * unit,
                0x3f9b5a);
    }
  }
}

void draw_taxi(shoal_canvas* canvas, int64_t cell, int64_t passenger, int64_t destination,
               int64_t last_action) {
  const double unit = std::min(canvas->width, canvas->height) / (kTownSize + 1.0);
  const double left = (canvas->width - kTownSize * unit) / 2;
  const double top = (canvas->height - kTownSize * unit) / 2;
  auto x_of = [&](int64_t column) { return left + static_cast<double>(column) * unit; };
  auto y_of = [&](int64_t row) { return top + static_cast<double>(row) * unit; };
  canvas->fill(canvas, 0x7f9f6f);
  rectangle(canvas, left, top, kTownSize * unit, kTownSize * unit, 0xd8d4c8);
  for (int k = 1; k < kTownSize; ++k) {
    canvas->line(canvas, x_of(k), top, x_of(k), y_of(kTownSize), 1.0, 0xbcb8ac);
    canvas->line(canvas, left, y_of(k), x_of(kTownSize), y_of(k), 1.0, 0xbcb8ac);
  }
  for (int64_t k = 0; k < 4; ++k) {
    const double x = x_of(kPlaces[k][1]), y = y_of(kPlaces[k][0]);
    rectangle(canvas, x + 2.0, y + 2.0, unit - 4.0, unit - 4.0, kPlaceColours[k]);
    if (k == destination)
      rectangle(canvas, x + 0.3 * unit, y + 0.3 * unit, 0.4 * unit, 0.4 * unit, 0xffffff);
    if (k == passenger) canvas->disc(canvas, x + unit / 2, y + unit / 2, 0.18 * unit, 0x503020);
  }
  for (const auto& wall : kWalls) {
    const double x = x_of(wall[1] + 1), y = y_of(wall[0]);
    canvas->line(canvas, x, y, x, y + unit, 5.0, 0x404040);
  }
  const double x = x_of(cell % kTownSize) + unit / 2, y = y_of(cell / kTownSize) + unit / 2;
  const bool across = last_action == 2 || last_action == 3;
  const double half_width = (across ? 0.38 : 0.24) * unit,
               half_height = (across ? 0.24 : 0.38) * unit;
  rectangle(canvas, x - half_width, y - half_height, 2 * half_width, 2 * half_height, 0xf0b000);
  rectangle(canvas, x - 0.6 * half_width, y - 0.6 * half_height, 1.2 * half_width,
            1.2 * half_height, passenger == 4 ? 0x503020 : 0x303030);
}

}  // namespace shoal
