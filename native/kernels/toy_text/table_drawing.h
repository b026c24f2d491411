// Rendering of grid worlds.
#pragma once

#include "../shoal_kernel.h"

namespace shoal {

/// Draws a grid of cells (S start, G goal, H hole, C cliff, others ground) and the agent.
void draw_grid(shoal_canvas* canvas, int rows, int columns, const char* cells, int64_t agent);

/// Draws the 5 x 5 town of Taxi. Passenger location 4 is the taxi.
void draw_taxi(shoal_canvas* canvas, int64_t cell, int64_t passenger, int64_t destination,
               int64_t last_action);

}  // namespace shoal
