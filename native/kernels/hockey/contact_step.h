// One step of a match from where its drives have left it, with all that can touch.
#pragma once

#include "contact.h"
#include "state.h"

namespace shoal::hockey {

/// What may come to touch what, as far as one can see without contacts. Bits; where there are two,
/// of player 1 and 2.
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

constexpr float kRounding = 1e-3f;  // a margin for it

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
  // In the mouth of a goal the walls are slanted; the narrowest place counts.
  constexpr float kHalfMouth = 78.0f / 60;
  return (out_y < kHalfHeight) &
         ((out_x < kHalfWidth) | ((out_x < kGoalFront) & (out_y < kHalfMouth)));
}

/// A step that has begun: where everything is, and how fast after drives and damping.
struct Started {
  Racket rackets[2];
  Rotation rotations[2];
  Vector puck, puck_velocity;
  float puck_vx_before;  // before it was shot and damped
  int near;              // bits of Near
};

/// Resolves contacts, moves what is near to anything, and writes where it is then, who has the
/// puck, and whether it is in a goal. The rest is in the state already, where it is after the step.
void resolve(const Started& started, State& state);

}  // namespace shoal::hockey
