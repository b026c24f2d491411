// The state of a match and the constants of its rules.
#pragma once

#include <cstdint>

#include "rink.h"

namespace shoal::hockey {

enum class Mode : uint8_t { kNormal, kShooting, kDefense };

enum class Opponent : uint8_t { kNone, kWeak, kStrong };

/// The pose relative to the centre of the rink, and the velocity of the centre of mass, as
/// observed.
struct Racket {
  float x, y, angle, vx, vy, spin;
};

/// The sign of coordinates in the frame of player `p` (0 or 1).
constexpr float sign_of(int p) { return p == 0 ? 1.0f : -1.0f; }

/// The first 18 floats are the observation of player 1.
struct State {
  Racket rackets[2];
  float puck_x, puck_y, puck_vx, puck_vy;
  float kept[2];  // steps for which a player may still hold the puck; 0: it does not
  float puck_spin;
  float shot[2];  // a velocity added to the puck in the next step
  float phase;    // of the scripted opponent
  int32_t time;   // steps of the episode
  Mode mode;
  Opponent opponent;
  uint8_t keeps;           // whether rackets hold the puck
  uint8_t touching;        // a bit for each racket that the puck touched in the last step
  uint8_t has_played;      // whether a match was played since the last seed
  uint8_t second_is_next;  // whether player 2 starts the next match, if has_played
  int8_t winner;           // 1: player 1, -1: player 2, 0: no goal
};

constexpr int kObservationSize = 18;
constexpr float kKept = 15.0f;  // steps for which the puck is held
constexpr float kShotSpeed = 60.0f;

/// The time limit of the reference; an episode lasts up to one step longer.
constexpr int max_steps(Mode mode) { return mode == Mode::kNormal ? 250 : 80; }

/// Writes the observation of a player.
template <int player>
inline void observe(const State& state, float* out) {
  constexpr float sign = sign_of(player);
  for (int k = 0; k < 2; ++k) {
    const Racket& racket = state.rackets[k == 0 ? player : 1 - player];
    *out++ = sign * racket.x;
    *out++ = sign * racket.y;
    *out++ = racket.angle;
    *out++ = sign * racket.vx;
    *out++ = sign * racket.vy;
    *out++ = racket.spin;
  }
  *out++ = sign * state.puck_x;
  *out++ = sign * state.puck_y;
  *out++ = sign * state.puck_vx;
  *out++ = sign * state.puck_vy;
  *out++ = state.kept[player];
  *out++ = state.kept[1 - player];
}

}  // namespace shoal::hockey
