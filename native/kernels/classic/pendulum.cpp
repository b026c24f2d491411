// Pendulum, as in gymnasium.envs.classic_control.pendulum.
//
// To round as Gymnasium does: the torque is float32, and NumPy computes in float32 when it combines
// it with Python floats.
#include <cmath>

#include "../builtin_kernels.h"
#include "../exact_math.h"
#include "../kernel_builder.h"

namespace shoal {

namespace {

constexpr double kPi = 3.141592653589793;

struct State {
  double theta, theta_dot;
  double torque;  // of the last step; only for rendering
};

struct Parameters {
  double max_speed, max_torque, dt, g, m, l;
};

struct Options {
  double x_init, y_init;
};

void observe(const State& state, float* observation) {
  observation[0] = static_cast<float>(std::cos(state.theta));
  observation[1] = static_cast<float>(std::sin(state.theta));
  observation[2] = static_cast<float>(state.theta_dot);
}

int64_t reset(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const auto& bounds = *reinterpret_cast<const Options*>(slots->options);
  for (int64_t k = 0; k < slots->count; ++k) {
    shoal_random* random = slots->random + k;
    states[k].theta = shoal_random_uniform(random, -bounds.x_init, bounds.x_init);
    states[k].theta_dot = shoal_random_uniform(random, -bounds.y_init, bounds.y_init);
    states[k].torque = 0.0;
    observe(states[k], observations + 3 * k);
  }
  return SHOAL_OK;
}

int64_t step(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const float*>(slots->actions[0]);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const Parameters p = *reinterpret_cast<const Parameters*>(slots->parameters);
  const auto strongest = static_cast<float>(p.max_torque);
  const double pull = 3.0 * p.g / (2.0 * p.l);
  const auto push = static_cast<float>(3.0 / (p.m * squared(p.l)));
  for (int64_t k = 0; k < slots->count; ++k) {
    State s = states[k];
    const float torque = clipped(actions[k], -strongest, strongest);
    const double angle = modulo(s.theta + kPi, 2.0 * kPi) - kPi;
    const double cost = squared(angle) + 0.1 * squared(s.theta_dot) + 0.001f * squared(torque);
    s.theta_dot += (pull * std::sin(s.theta) + push * torque) * p.dt;
    s.theta_dot = clipped(s.theta_dot, -p.max_speed, p.max_speed);
    s.theta += s.theta_dot * p.dt;
    s.torque = torque;
    slots->rewards[k] = -cost;
    states[k] = s;
    observe(s, observations + 3 * k);
  }
  return SHOAL_OK;
}

/// Draws an arrow around the axle; its length is proportional to the torque.
void draw_torque(shoal_canvas* canvas, double x, double y, double fraction) {
  constexpr int kPieces = 24;
  const double radius = 0.3 * canvas->width / 4.4, end = 1.5 * kPi * fraction;
  double from_x = x, from_y = y + radius;
  for (int k = 1; k <= kPieces; ++k) {
    const double angle = end * k / kPieces;
    const double to_x = x + radius * std::sin(angle), to_y = y + radius * std::cos(angle);
    canvas->line(canvas, from_x, from_y, to_x, to_y, 3.0, 0x000000);
    from_x = to_x;
    from_y = to_y;
  }
  const double ahead = fraction > 0.0 ? 1.0 : -1.0;
  const double along_x = ahead * std::cos(end), along_y = -ahead * std::sin(end);
  const double head[] = {from_x + 9.0 * along_x, from_y + 9.0 * along_y, from_x - 6.0 * along_y,
                         from_y + 6.0 * along_x, from_x + 6.0 * along_y, from_y - 6.0 * along_x};
  canvas->polygon(canvas, head, 3, 0x000000);
}

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& state = *static_cast<const State*>(slots->state);
  const auto& p = *reinterpret_cast<const Parameters*>(slots->parameters);
  const double scale = canvas->width / 4.4;
  const double x = canvas->width / 2.0, y = canvas->height / 2.0;
  const double end_x = x - scale * std::sin(state.theta), end_y = y - scale * std::cos(state.theta);
  canvas->fill(canvas, 0xffffff);
  canvas->line(canvas, x, y, end_x, end_y, 0.2 * scale, 0xcc4d4d);
  canvas->disc(canvas, x, y, 0.1 * scale, 0xcc4d4d);
  canvas->disc(canvas, end_x, end_y, 0.1 * scale, 0xcc4d4d);
  if (state.torque != 0.0) draw_torque(canvas, x, y, state.torque / p.max_torque);
  canvas->disc(canvas, x, y, 0.05 * scale, 0x000000);
}

constexpr shoal_leaf kObservation[] = {array(SHOAL_FLOAT32, 3)};
constexpr shoal_leaf kAction[] = {array(SHOAL_FLOAT32, 1)};
constexpr shoal_leaf kFields[] = {
    field("theta", SHOAL_FLOAT64, offsetof(State, theta)),
    field("theta_dot", SHOAL_FLOAT64, offsetof(State, theta_dot)),
    field("torque", SHOAL_FLOAT64, offsetof(State, torque)),
};
constexpr shoal_number kParameters[] = {
    {"max_speed", 8.0}, {"max_torque", 2.0}, {"dt", 0.05}, {"g", 10.0}, {"m", 1.0}, {"l", 1.0},
};
constexpr shoal_number kOptions[] = {{"x_init", kPi}, {"y_init", 1.0}};

}  // namespace

const shoal_kernel kPendulum = KernelBuilder("Pendulum", sizeof(State))
                                   .observations(kObservation)
                                   .actions(kAction)
                                   .fields(kFields)
                                   .parameters(kParameters)
                                   .options(kOptions)
                                   .functions(reset, step)
                                   .images(draw, 500, 500, 30);

}  // namespace shoal
