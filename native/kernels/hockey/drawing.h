// Rendering of a match.
#pragma once

#include "../shoal_kernel.h"

namespace shoal::hockey {

/// Draws the match of the first slot.
void draw(const shoal_slots* slots, shoal_canvas* canvas);

}  // namespace shoal::hockey
