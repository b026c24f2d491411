// Steps several matches at a time, number by number side by side, as far as nothing touches; the
// others one by one.
#pragma once

#include "lanes.h"
#include "state.h"

namespace shoal::hockey {

/// What both players of each match want: numbers from -1 to 1; those beyond are cut off.
struct Wishes {
  Lanes x[2], y[2], turn[2];
  Lanes shoot[2];  // more than a half: yes
};

/// Steps `count` matches, at most kLanes.
void step_block(State* states, int count, const Wishes& wishes);

}  // namespace shoal::hockey
