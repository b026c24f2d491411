#include "rules.h"

#include <cmath>

namespace shoal::hockey {

namespace {

float uniform(shoal_random& random, double low, double high) {
  return static_cast<float>(shoal_random_uniform(&random, low, high));
}

}  // namespace

void begin(State& state, const Start& start, shoal_random& random) {
  bool first_starts = start.starter < 0 ? !state.second_is_next : start.starter == 0;
  if (start.starter < 0 && !state.has_played) first_starts = shoal_random_double(&random) < 0.5;
  const bool is_normal = start.mode == Mode::kNormal;
  state = State{};
  state.mode = start.mode;
  state.keeps = start.keeps;
  state.opponent = start.opponent;
  state.has_played = 1;
  state.second_is_next = first_starts;
  state.rackets[0].x = -3.0f;
  state.rackets[1].x = 3.0f;
  if (!is_normal) {
    state.rackets[1].x += uniform(random, -10.0 / 3.0, 5.0 / 3.0);
    state.rackets[1].y = uniform(random, -2.0, 2.0);
  }
  if (start.mode == Mode::kDefense) {
    state.puck_x = uniform(random, 0.0, 10.0 / 3.0);
    state.puck_y = 0.8f * uniform(random, -4.0, 4.0);
    const Vector path{-5.0f - state.puck_x, 0.6f * uniform(random, -1.25, 1.25) - state.puck_y};
    const float scale = kShotSpeed / length(path);
    state.shot[0] = scale * path.x;
    state.shot[1] = scale * path.y;
  } else {
    const float distance = uniform(random, 1.0, 2.0);
    state.puck_x = first_starts || !is_normal ? -distance : distance;
    state.puck_y = uniform(random, -1.0, 1.0);
  }
}

}  // namespace shoal::hockey
