// What the two mountain cars have in common.
#pragma once

#include "../shoal_kernel.h"

namespace shoal {

/// Draws the hills, the flag at `goal`, and the car at `position`, both between `low` and `high`.
void draw_mountain(shoal_canvas* canvas, double position, double low, double high, double goal);

}  // namespace shoal
