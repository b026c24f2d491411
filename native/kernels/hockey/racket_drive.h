// The effect of actions on rackets, before contacts.
#pragma once

#include "state.h"

namespace shoal::hockey {

/// Rackets of several matches, each in the frame of its player, who plays from left to right.
struct Rackets {
  Lanes x, y, angle, vx, vy, spin;
};

/// Clips to [-1, 1].
SHOAL_INLINE Lanes within_one(const Lanes& numbers) {
  const Lanes zero{};
  return smaller(larger(numbers, zero - 1.0f), zero + 1.0f);
}

/// Applies actions and damping to the velocities of rackets. `held_vx` and `held_vy` are set to the
/// velocity at the start of the step, which a held puck takes over.
SHOAL_INLINE void drive(Rackets& racket, const Lanes& action_x, const Lanes& action_y,
                        const Lanes& action_turn, Lanes& held_vx, Lanes& held_vy) {
  constexpr float kForce = 6000.0f, kTorque = 400.0f;
  constexpr float kBand = -0.5f, kFast = 10.0f;  // the start of the centre zone; the speed limit
  constexpr float kBackmost = -3.5f, kOutmost = 2.8f;  // rackets stop here
  constexpr float kMaxAngle = kPi / 3.0f;
  constexpr float kAcceleration = kStep / kRacketMass;  // the speed that a force adds in one step
  constexpr float kFullStop = kRacketMass / kStep;  // the force that cancels a speed in one step
  const Lanes zero{}, one = zero + 1.0f;

  const Flags past = racket.x > kBand, before = racket.x <= kBand;
  const Lanes against = (racket.vx > 0.0f ? zero - 2.0f : zero) - racket.x;
  Lanes push_x = past ? against * racket.vx * kFullStop : kForce * within_one(action_x);
  Lanes push_y = kForce * within_one(action_y);

  // Above the speed limit, forces may only slow a racket down.
  const Lanes squared = racket.vx * racket.vx + racket.vy * racket.vy;
  const Flags slow = before & (squared < kFast * kFast);
  const Lanes pushed_vx = racket.vx + kAcceleration * push_x;
  const Lanes pushed_vy = racket.vy + kAcceleration * push_y;
  const Flags gains = pushed_vx * pushed_vx + pushed_vy * pushed_vy >= squared;
  const Flags coasts = before & (slow == 0) & gains;

  const Flags stops_x =
      ((racket.x < kBackmost) & (push_x < 0.0f)) | ((racket.x > 0.0f) & (push_x > 0.0f));
  const Flags stops_y =
      ((racket.y > kOutmost) & (push_y > 0.0f)) | ((racket.y < -kOutmost) & (push_y < 0.0f));
  held_vx = stops_x & (coasts == 0) ? zero : racket.vx;
  held_vy = stops_y & (coasts == 0) ? zero : racket.vy;
  push_x = stops_x | coasts ? zero : push_x;
  push_y = stops_y | coasts ? zero : push_y;

  const Lanes kept = slow ? one * (1.0f - 5.0f * kStep) : one * (1.0f - 20.0f * kStep);
  racket.vx = (held_vx + kAcceleration * push_x) * kept;
  racket.vy = (held_vy + kAcceleration * push_y) * kept;

  const Flags turned = magnitude(racket.angle) > kMaxAngle;
  const Lanes swing = racket.angle * racket.spin > 0.0f ? racket.spin : zero;
  const Lanes torque =
      turned ? -0.1f * (racket.angle + swing) * kFullStop : kTorque * within_one(action_turn);
  const Lanes kept_spin = turned ? one * (1.0f - 10.0f * kStep) : one * (1.0f - 2.0f * kStep);
  racket.spin = (racket.spin + kStep / kRacketInertia * torque) * kept_spin;
}

}  // namespace shoal::hockey
