// The start of a match, and rewards.
#pragma once

#include "../shoal_kernel.h"
#include "state.h"

namespace shoal::hockey {

/// How a match starts.
struct Start {
  Mode mode;
  bool keeps;  // whether rackets hold the puck
  Opponent opponent;
  int starter;  // 0 or 1; -1: alternate, with a random first starter
};

/// Starts a match. The only information carried over from the previous match is who starts.
void begin(State& state, const Start& start, shoal_random& random);

/// The reward components of a player in one step.
struct Score {
  int64_t winner;  // 1: this player, -1: the opponent, 0: no goal yet
  double closeness, touch, direction;

  double reward() const { return 10.0 * static_cast<double>(winner) + closeness; }
};

template <int player>
inline Score score(const State& state) {
  constexpr double kFarthest = 250.0 / 60.0, kFastest = 25.0, kMaxLost = 30.0;
  constexpr float sign = sign_of(player);
  // Precomputed factors, because divisions are slow.
  struct Factors {
    double closeness, direction;
    constexpr explicit Factors(Mode mode)
        : closeness(-kMaxLost / (kFarthest * max_steps(mode) / 2.0)),
          direction(sign / (max_steps(mode) * kFastest)) {}
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
