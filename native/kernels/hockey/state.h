// What a match consists of, and the numbers of its rules.
#pragma once

#include <cstdint>

#include "rink.h"

namespace shoal::hockey {

enum class Mode : uint8_t { kNormal, kShooting, kDefense };

enum class Opponent : uint8_t { kNone, kWeak, kStrong };

/// As it is observed: relative to the centre of the rink; the velocity is that of the centre of
/// mass.
struct Racket {
  float x, y, angle, vx, vy, spin;
};

/// The sign of coordinates in the frame of player `p`, counted from 0.
constexpr float sign_of(int p) { return p == 0 ? 1.0f : -1.0f; }

/// The first 18 numbers are what player 1 observes, in this order.
struct State {
  Racket rackets[2];
  float puck_x, puck_y, puck_vx, puck_vy;
  float kept[2];  // for how many steps a player may still keep the puck; 0: it does not
  float puck_spin;
  float shot[2];  // a velocity that the puck gets in the next step
  float phase;    // of the opponent inside
  int32_t time;   // steps of the episode
  Mode mode;
  Opponent opponent;
  uint8_t keeps;           // whether pucks are kept at all
  uint8_t touching;        // a bit for each racket that the puck touched in the last step
  uint8_t has_played;      // since the last seed
  uint8_t second_is_next;  // who starts the next match, where there was one
  int8_t winner;           // 1, -1, or 0 for nobody
};

constexpr int kSeen = 18;
constexpr float kKept = 15.0f;  // steps
constexpr float kShotSpeed = 60.0f;

/// An episode lasts one step longer.
constexpr int most_steps(Mode mode) { return mode == Mode::kNormal ? 250 : 80; }

/// What a player observes.
template <int player>
inline void see(const State& state, float* seen) {
  constexpr float sign = sign_of(player);
  for (int k = 0; k < 2; ++k) {
    const Racket& racket = state.rackets[k == 0 ? player : 1 - player];
    *seen++ = sign * racket.x;
    *seen++ = sign * racket.y;
    *seen++ = racket.angle;
    *seen++ = sign * racket.vx;
    *seen++ = sign * racket.vy;
    *seen++ = racket.spin;
  }
  *seen++ = sign * state.puck_x;
  *seen++ = sign * state.puck_y;
  *seen++ = sign * state.puck_vx;
  *seen++ = sign * state.puck_vy;
  *seen++ = state.kept[player];
  *seen++ = state.kept[1 - player];
}

}  // namespace shoal::hockey
