// The part of a match's step in which bodies touch, after actions have been applied.
#pragma once

#include "contact.h"
#include "state.h"

namespace shoal::hockey {

/// Bits for bodies that may touch in this step, by a cheap conservative test. Bits that concern one
/// racket are shifted left by one for player 2.
enum Near : int {
  kRacketNearWall = 1,
  kPuckNearRacket = 4,
  kPuckNearWall = 16,
  kRacketsNear = 32,
};

constexpr int near_of_racket(int k) {
  return kRacketNearWall << k | kPuckNearRacket << k | kRacketsNear;
}
constexpr int kNearOfPuck = kPuckNearWall | kPuckNearRacket | kPuckNearRacket << 1;

constexpr float kRounding = 1e-3f;  // a margin for rounding errors

/// Whether a racket is clear of all walls and goals, in the frame of its player.
template <class Real>
SHOAL_INLINE auto is_clear(Real x, Real y, Real sine, Real cosine) {
  // Its corners are (0.1, +-0.4), (-0.2, +-0.4), (-0.36, +-0.2) and (-0.42, 0).
  const Real s = magnitude(sine), c = magnitude(cosine);
  const Real right = larger(larger(0.1f * cosine, -0.2f * cosine) + 0.4f * s,
                            larger(-0.36f * cosine + 0.2f * s, -0.42f * cosine));
  const Real left = smaller(smaller(0.1f * cosine, -0.2f * cosine) - 0.4f * s,
                            smaller(-0.36f * cosine - 0.2f * s, -0.42f * cosine));
  const Real top = larger(larger(0.1f * sine, -0.2f * sine) + 0.4f * c,
                          larger(-0.36f * sine + 0.2f * c, -0.42f * sine));
  const Real bottom = smaller(smaller(0.1f * sine, -0.2f * sine) - 0.4f * c,
                              smaller(-0.36f * sine - 0.2f * c, -0.42f * sine));
  constexpr float kMargin = 2.0f * kSkin + kRounding;
  const Real out_x = larger(x + right, -(x + left)) + kMargin;
  const Real out_y = larger(y + top, -(y + bottom)) + kMargin;
  // The walls at a goal are slanted; use the narrowest part.
  constexpr float kHalfMouth = 78.0f / 60;
  return (out_y < kHalfHeight) &
         ((out_x < kHalfWidth) | ((out_x < kGoalFront) & (out_y < kHalfMouth)));
}

/// The start of a step: poses, and velocities after actions and damping.
struct StepStart {
  Racket rackets[2];
  Rotation rotations[2];
  Vector puck, puck_velocity;
  float puck_vx_before;  // before shot and damping
  int near;              // bits of Near
};

/// Resolves contacts and moves the bodies that may touch; updates their poses, possession and
/// winner in `state`. Bodies that touch nothing already have their final pose there.
void resolve(const StepStart& start, State& state);

}  // namespace shoal::hockey
