// How a match begins, and what its players get.
#pragma once

#include "../shoal_kernel.h"
#include "state.h"

namespace shoal::hockey {

/// How a match is to begin.
struct Start {
  Mode mode;
  bool keeps;
  Opponent opponent;
  int starter;  // 0 or 1; -1: in turns, the first one by chance
};

/// Begins a match. Of the one before, only who starts next is left.
void begin(State& state, const Start& start, shoal_random& random);

/// What a step was worth to a player.
struct Score {
  int64_t winner;  // 1: the player, -1: the other one, 0: nobody yet
  double closeness, touch, direction;

  /// What counts.
  double reward() const { return 10.0 * static_cast<double>(winner) + closeness; }
};

template <int player>
inline Score score(const State& state) {
  constexpr double kFarthest = 250.0 / 60.0, kFastest = 25.0, kMostLost = 30.0;
  constexpr float sign = sign_of(player);
  // Multiplied with: divisions would take longer than all the rest.
  struct Factors {
    double closeness, direction;
    constexpr explicit Factors(Mode mode)
        : closeness(-kMostLost / (kFarthest * most_steps(mode) / 2.0)),
          direction(sign / (most_steps(mode) * kFastest)) {}
  };
  static constexpr Factors kNormal(Mode::kNormal), kTraining(Mode::kShooting);
  const Factors& factors = state.mode == Mode::kNormal ? kNormal : kTraining;
  const bool comes = sign * state.puck_x < 0.0f && sign * state.puck_vx <= 0.0f;
  const Racket& racket = state.rackets[player];
  const float distance = length({racket.x - state.puck_x, racket.y - state.puck_y});
  Score score{};
  score.winner = player == 0 ? state.winner : -state.winner;
  score.closeness = comes ? distance * factors.closeness : 0.0;
  score.touch = state.kept[player] == kKept ? 1.0 : 0.0;
  score.direction = state.puck_vx * factors.direction;
  return score;
}

}  // namespace shoal::hockey
