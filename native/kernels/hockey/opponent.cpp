#include "opponent.h"

#include <cmath>

namespace shoal::hockey {

namespace {

constexpr float kAnglePeak = kPi / 3.0f;
constexpr float kHomeX = -3.5f;

/// One axis: towards the target, and less so where it would be reached in no time.
float towards(float target, float position, float speed, float gain, float brake_time) {
  constexpr float kBrake = 0.5f;
  const float error = target - position;
  const bool brakes = std::abs(error) < brake_time * std::abs(speed + 0.01f);
  const float wanted = error * gain - (brakes ? kBrake * speed : 0.0f);
  return smaller(larger(wanted, -1.0f), 1.0f);
}

}  // namespace

Wish scripted(const float* seen, bool is_weak, float phase) {
  const float x = seen[0], y = seen[1], angle = seen[2];
  const float puck_x = seen[12], puck_y = seen[13], puck_vx = seen[14], puck_vy = seen[15];
  const float gain = is_weak ? 0.5f : 10.0f;
  float target_x = kHomeX, target_y = 0.0f;
  if (puck_vx < 0.5f) {
    const float away_y = y - puck_y;
    target_y = puck_y;
    if (x < puck_x && std::abs(away_y) < 0.5f) {
      // Behind it: go and kick.
      const float away_x = x - puck_x;
      target_x = puck_x + 0.2f;
      target_y += 0.1f * puck_vy * std::sqrt(away_x * away_x + away_y * away_y);
    }
  }
  const float target_angle = kAnglePeak * rotation(phase).sine;
  const bool shoots = seen[16] > 0.0f && seen[16] < 7.0f;
  return {towards(target_x, x, seen[3], gain, 0.1f),
          towards(target_y, y, seen[4], gain / 5.0f, 0.1f),
          towards(target_angle, angle, seen[5], gain / 2.0f, 1.0f), shoots ? 1.0f : 0.0f};
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
