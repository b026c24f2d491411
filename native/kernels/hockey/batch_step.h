// Steps several matches at a time, number by number side by side, as far as nothing touches; the
// others one by one.
#pragma once

#include "simd.h"
#include "state.h"

namespace shoal::hockey {

/// What a player wants: numbers from -1 to 1; those beyond are cut off.
struct Wish {
  float x, y, turn;
  float shoot;  // more than a half: yes
};

/// Steps `count` matches, at most kLanes. `wishes` are those of both players of each match, and
/// where there is none, of any.
void step_block(State* states, int count, const Wish* const (&wishes)[kLanes]);

}  // namespace shoal::hockey
