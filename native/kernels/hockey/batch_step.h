// Steps several matches at once with SIMD instructions. Matches in which bodies may touch are
// completed one by one.
#pragma once

#include "simd.h"
#include "state.h"

namespace shoal::hockey {

/// The action of a player. Forces are clipped to [-1, 1].
struct PlayerAction {
  float x, y, turn;
  float shoot;  // above 0.5: shoot
};

/// Steps `count` matches, at most kLanes. `actions` has a pointer to the two player actions of each
/// match; the remaining pointers must be valid, too.
void step_block(State* states, int count, const PlayerAction* const (&actions)[kLanes]);

}  // namespace shoal::hockey
