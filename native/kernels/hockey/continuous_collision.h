// Finds what a body has run into in the course of a step, and lets it happen there and then.
#pragma once

#include "solver.h"

namespace shoal::hockey {

/// Takes the puck from where a step began to where it has ended, along the walls in between.
void sweep_puck(Body& puck, Body& ground, Vector from);

/// The same for a racket, which goals are in the way of, too.
void sweep_racket(Body& racket, const Polygon& shape, Body& ground, Vector from, float from_angle);

}  // namespace shoal::hockey
