// MountainCarContinuous, as in gymnasium.envs.classic_control.continuous_mountain_car.
//
// To round as Gymnasium does: its state is float64 until the first step of an episode and float32
// afterwards, and NumPy computes in float32 when it combines a float32 with a Python float.
#include <cmath>

#include "../builtin_kernels.h"
#include "../kernel_builder.h"
#include "mountain_car.h"

namespace shoal {

namespace {

struct State {
  double position, velocity;
  int64_t is_single;  // whether position and velocity are float32
};

struct Parameters {
  double min_action, max_action, min_position, max_position, max_speed;
  double goal_position, goal_velocity, power;
};

struct Options {
  double low, high;
};

int64_t reset(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const auto& options = *reinterpret_cast<const Options*>(slots->options);
  for (int64_t k = 0; k < slots->count; ++k) {
    states[k] = {shoal_random_uniform(slots->random + k, options.low, options.high), 0.0, 0};
    observations[2 * k] = static_cast<float>(states[k].position);
    observations[2 * k + 1] = 0.0f;
  }
  return SHOAL_OK;
}

/// Steps a state of type T; returns whether the goal is reached.
template <class T>
bool advance(State& state, float action, const Parameters& p) {
  T position = static_cast<T>(state.position), velocity = static_cast<T>(state.velocity);
  const double pull = 0.0025 * std::cos(static_cast<double>(T{3} * position));
  if (action < p.min_action || action > p.max_action) {
    const double force = action < p.min_action ? p.min_action : p.max_action;
    velocity += static_cast<T>(force * p.power - pull);
  } else {
    velocity += action * static_cast<float>(p.power) - static_cast<float>(pull);
  }
  const T fastest = static_cast<T>(p.max_speed);
  if (velocity > fastest) velocity = fastest;
  if (velocity < -fastest) velocity = -fastest;
  const T low = static_cast<T>(p.min_position), high = static_cast<T>(p.max_position);
  position += velocity;
  if (position > high) position = high;
  if (position < low) position = low;
  if (position == low && velocity < T{0}) velocity = T{0};
  state = {static_cast<float>(position), static_cast<float>(velocity), 1};
  return position >= static_cast<T>(p.goal_position) && velocity >= static_cast<T>(p.goal_velocity);
}

int64_t step(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const float*>(slots->actions[0]);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const Parameters p = *reinterpret_cast<const Parameters*>(slots->parameters);
  for (int64_t k = 0; k < slots->count; ++k) {
    const double action = actions[k];
    const bool arrived = states[k].is_single ? advance<float>(states[k], actions[k], p)
                                             : advance<double>(states[k], actions[k], p);
    slots->rewards[k] = (arrived ? 100.0 : 0.0) - action * action * 0.1;
    slots->terminated[k] = arrived;
    observations[2 * k] = static_cast<float>(states[k].position);
    observations[2 * k + 1] = static_cast<float>(states[k].velocity);
  }
  return SHOAL_OK;
}

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& p = *reinterpret_cast<const Parameters*>(slots->parameters);
  draw_mountain(canvas, static_cast<const State*>(slots->state)->position, p.min_position,
                p.max_position, p.goal_position);
}

constexpr shoal_leaf kObservation[] = {array(SHOAL_FLOAT32, 2)};
constexpr shoal_leaf kAction[] = {array(SHOAL_FLOAT32, 1)};
constexpr shoal_leaf kFields[] = {
    field("position", SHOAL_FLOAT64, offsetof(State, position)),
    field("velocity", SHOAL_FLOAT64, offsetof(State, velocity)),
    field("is_single", SHOAL_INT64, offsetof(State, is_single)),
};
constexpr shoal_number kParameters[] = {
    {"min_action", -1.0}, {"max_action", 1.0},     {"min_position", -1.2}, {"max_position", 0.6},
    {"max_speed", 0.07},  {"goal_position", 0.45}, {"goal_velocity", 0.0}, {"power", 0.0015},
};
constexpr shoal_number kOptions[] = {{"low", -0.6}, {"high", -0.4}};

}  // namespace

const shoal_kernel kMountainCarContinuous = KernelBuilder("MountainCarContinuous", sizeof(State))
                                                .observations(kObservation)
                                                .actions(kAction)
                                                .fields(kFields)
                                                .parameters(kParameters)
                                                .options(kOptions)
                                                .functions(reset, step)
                                                .images(draw, 600, 400, 30);

}  // namespace shoal
