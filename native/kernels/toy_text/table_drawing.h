// Pictures of grid worlds.
#pragma once

#include "../shoal_kernel.h"

namespace shoal {

/// A grid of cells (S start, G goal, H hole, C cliff, anything else ground) with somebody in one.
void draw_grid(shoal_canvas* canvas, int rows, int columns, const char* cells, int64_t agent);

/// The town of the taxi, five by five; a passenger in place 4 is in the taxi.
void draw_taxi(shoal_canvas* canvas, int64_t cell, int64_t passenger, int64_t destination,
               int64_t last_action);

}  // namespace shoal
