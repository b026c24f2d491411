#include "scripted_policy.h"

namespace shoal::hockey {

namespace {

/// The force along one axis towards a target, reduced when the target is reached soon.
template <class Real>
SHOAL_INLINE Real towards(Real target, Real position, Real speed, Real gain, float brake_time) {
  const Real zero{}, error = target - position;
  const auto brakes = magnitude(error) < brake_time * magnitude(speed + 0.01f);
  const Real wanted = error * gain - (brakes ? 0.5f * speed : zero);
  return smaller(larger(wanted, zero - 1.0f), zero + 1.0f);
}

/// Computes an action from the player's racket, the puck and the remaining possession time.
template <class Real>
SHOAL_INLINE void decide(const Real (&racket)[6], const Real (&puck)[4], Real kept, Real gain,
                         Real phase, Real (&action)[4]) {
  constexpr float kMaxAngle = kPi / 3.0f, kHome = -3.5f;
  const Real zero{};
  const Real away_x = racket[0] - puck[0], away_y = racket[1] - puck[1];
  const auto approaches = puck[2] < 0.5f;
  const auto kicks = approaches & (away_x < 0.0f) & (magnitude(away_y) < 0.5f);
  const Real lead = 0.1f * puck[3] * root(away_x * away_x + away_y * away_y);
  const Real target_x = kicks ? puck[0] + 0.2f : zero + kHome;
  const Real target_y = (approaches ? puck[1] : zero) + (kicks ? lead : zero);
  Real sine, cosine;
  sine_cosine(phase, sine, cosine);
  action[0] = towards(target_x, racket[0], racket[3], gain, 0.1f);
  action[1] = towards(target_y, racket[1], racket[4], gain * 0.2f, 0.1f);
  action[2] = towards(kMaxAngle * sine, racket[2], racket[5], gain * 0.5f, 1.0f);
  action[3] = (kept > 0.0f) & (kept < 7.0f) ? zero + 1.0f : zero;
}

constexpr float kWeakGain = 0.5f, kStrongGain = 10.0f;

}  // namespace

PlayerAction scripted_action(const float* observation, bool is_weak, float phase) {
  const float racket[6] = {observation[0], observation[1], observation[2],
                           observation[3], observation[4], observation[5]};
  const float puck[4] = {observation[12], observation[13], observation[14], observation[15]};
  float action[4];
  decide(racket, puck, observation[16], is_weak ? kWeakGain : kStrongGain, phase, action);
  return {action[0], action[1], action[2], action[3]};
}

SHOAL_WIDE void scripted_actions(const float* const (&observations)[kLanes],
                                 const bool (&is_weak)[kLanes], const Lanes& phase,
                                 float* const (&actions)[kLanes], int count) {
  Lanes gain, racket[6], columns[8], puck[4], kept;
  read_rows(observations, columns);
  for (int k = 0; k < 6; ++k) racket[k] = columns[k];
  const float* rest[kLanes];
  for (int k = 0; k < kLanes; ++k) {
    rest[k] = observations[k] + 12;
    gain[k] = is_weak[k] ? kWeakGain : kStrongGain;
    kept[k] = observations[k][16];
  }
  read_rows(rest, puck);
  Lanes action[4];
  decide(racket, puck, kept, gain, phase, action);
  write_rows(action, actions, count);
}

float first_phase(shoal_random& random) {
  return static_cast<float>(shoal_random_uniform(&random, 0.0, 3.141592653589793));
}

float next_phase(float phase, shoal_random& random) {
  constexpr float kTurn = 2.0f * kPi;
  const float next = phase + static_cast<float>(shoal_random_uniform(&random, 0.0, 0.2));
  return next < kTurn ? next : next - kTurn;
}

}  // namespace shoal::hockey
