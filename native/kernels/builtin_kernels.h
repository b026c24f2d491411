// The built-in kernels.
#pragma once

#include "shoal_kernel.h"

namespace shoal {

extern const shoal_kernel kCartPole;
extern const shoal_kernel kMountainCar;
extern const shoal_kernel kMountainCarContinuous;
extern const shoal_kernel kPendulum;
extern const shoal_kernel kAcrobot;
extern const shoal_kernel kBlackjack;
extern const shoal_kernel kHockeyKernels[6];  // one per shape of actions

}  // namespace shoal
