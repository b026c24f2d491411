// The scripted player, weak and strong.
#pragma once

#include "../shoal_kernel.h"
#include "batch_step.h"

namespace shoal::hockey {

/// What the scripted player does where it sees these 18 numbers. It turns its racket to and fro;
/// `phase` says how far it is in that.
Wish scripted(const float* seen, bool is_weak, float phase);

/// The same for several players, the first `count` of which write what they do into their rows.
void scripted(const float* const (&seen)[kLanes], const bool (&is_weak)[kLanes], const Lanes& phase,
              float* const (&actions)[kLanes], int count);

/// The phase that a scripted player begins with, and the one of its next move.
float first_phase(shoal_random& random);
float next_phase(float phase, shoal_random& random);

}  // namespace shoal::hockey
