// Continuous collision detection: finds and resolves impacts within a step, so that fast bodies do
// not pass through walls.
#pragma once

#include "solver.h"

namespace shoal::hockey {

/// Moves the puck from its position at the start of the step to its current one, with impacts.
void sweep_puck(Body& puck, Body& ground, Vector from);

/// The same for a racket, which also collides with goals.
void sweep_racket(Body& racket, const Polygon& shape, Body& ground, Vector from, float from_angle);

}  // namespace shoal::hockey
