// The policy of the scripted player, weak and strong.
#pragma once

#include "../shoal_kernel.h"
#include "batch_step.h"

namespace shoal::hockey {

/// The action for an observation of 18 floats. The player swings its racket periodically; `phase`
/// is the phase of the swing.
PlayerAction scripted_action(const float* observation, bool is_weak, float phase);

/// The same for several players. Writes the actions of the first `count` players.
void scripted_actions(const float* const (&observations)[kLanes], const bool (&is_weak)[kLanes],
                      const Lanes& phase, float* const (&actions)[kLanes], int count);

/// The initial phase of a scripted player, and the phase of its next action.
float first_phase(shoal_random& random);
float next_phase(float phase, shoal_random& random);

}  // namespace shoal::hockey
