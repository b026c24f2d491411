// Code shared by MountainCar and MountainCarContinuous.
#pragma once

#include "../shoal_kernel.h"

namespace shoal {

/// Draws the hills from `low` to `high`, the flag at `goal` and the car at `position`.
void draw_mountain(shoal_canvas* canvas, double position, double low, double high, double goal);

}  // namespace shoal
