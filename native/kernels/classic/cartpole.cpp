// CartPole, as in gymnasium.envs.classic_control.cartpole.
#include <cmath>
#include <initializer_list>

#include "../builtin_kernels.h"
#include "../kernel_builder.h"

namespace shoal {

namespace {

struct State {
  double x, x_dot, theta, theta_dot;
};

struct Parameters {
  double gravity, masspole, total_mass, length, polemass_length, force_mag, tau;
  double theta_threshold_radians, x_threshold, is_semi_implicit, sutton_barto_reward;
};

struct Options {
  double low, high;
};

void observe(const State& state, float* observation) {
  observation[0] = static_cast<float>(state.x);
  observation[1] = static_cast<float>(state.x_dot);
  observation[2] = static_cast<float>(state.theta);
  observation[3] = static_cast<float>(state.theta_dot);
}

int64_t reset(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const auto& options = *reinterpret_cast<const Options*>(slots->options);
  for (int64_t k = 0; k < slots->count; ++k) {
    shoal_random* random = slots->random + k;
    for (double* value : {&states[k].x, &states[k].x_dot, &states[k].theta, &states[k].theta_dot}) {
      *value = shoal_random_uniform(random, options.low, options.high);
    }
    observe(states[k], observations + 4 * k);
  }
  return SHOAL_OK;
}

int64_t step(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const int64_t*>(slots->actions[0]);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const Parameters p = *reinterpret_cast<const Parameters*>(slots->parameters);
  for (int64_t k = 0; k < slots->count; ++k) {
    State s = states[k];
    const double force = actions[k] == 1 ? p.force_mag : -p.force_mag;
    const double cosine = std::cos(s.theta), sine = std::sin(s.theta);
    const double push =
        (force + p.polemass_length * (s.theta_dot * s.theta_dot) * sine) / p.total_mass;
    const double theta_acc =
        (p.gravity * sine - cosine * push) /
        (p.length * (4.0 / 3.0 - p.masspole * (cosine * cosine) / p.total_mass));
    const double x_acc = push - p.polemass_length * theta_acc * cosine / p.total_mass;
    if (p.is_semi_implicit == 0.0) {
      s.x += p.tau * s.x_dot;
      s.x_dot += p.tau * x_acc;
      s.theta += p.tau * s.theta_dot;
      s.theta_dot += p.tau * theta_acc;
    } else {
      s.x_dot += p.tau * x_acc;
      s.x += p.tau * s.x_dot;
      s.theta_dot += p.tau * theta_acc;
      s.theta += p.tau * s.theta_dot;
    }
    const bool fell = s.x < -p.x_threshold || s.x > p.x_threshold ||
                      s.theta < -p.theta_threshold_radians || s.theta > p.theta_threshold_radians;
    slots->rewards[k] = p.sutton_barto_reward == 0.0 ? 1.0 : fell ? -1.0 : 0.0;
    slots->terminated[k] = fell;
    states[k] = s;
    observe(s, observations + 4 * k);
  }
  return SHOAL_OK;
}

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& state = *static_cast<const State*>(slots->state);
  const auto& p = *reinterpret_cast<const Parameters*>(slots->parameters);
  const double scale = canvas->width / (2.0 * p.x_threshold);
  const double ground = canvas->height - 100.0, cart_x = state.x * scale + canvas->width / 2.0;
  const double axle_y = ground - 7.5, pole = scale * 2.0 * p.length - 5.0;
  const double sine = std::sin(state.theta), cosine = std::cos(state.theta);
  canvas->fill(canvas, 0xffffff);
  canvas->line(canvas, 0.0, ground, canvas->width, ground, 1.0, 0x000000);
  const double cart[] = {cart_x - 25.0, ground + 15.0, cart_x - 25.0, ground - 15.0,
                         cart_x + 25.0, ground - 15.0, cart_x + 25.0, ground + 15.0};
  canvas->polygon(canvas, cart, 4, 0x000000);
  canvas->line(canvas, cart_x - 5.0 * sine, axle_y + 5.0 * cosine, cart_x + pole * sine,
               axle_y - pole * cosine, 10.0, 0xca9865);
  canvas->disc(canvas, cart_x, axle_y, 5.0, 0x8184cb);
}

constexpr shoal_leaf kObservation[] = {array(SHOAL_FLOAT32, 4)};
constexpr shoal_leaf kAction[] = {number(SHOAL_INT64)};
constexpr shoal_leaf kFields[] = {
    field("x", SHOAL_FLOAT64, offsetof(State, x)),
    field("x_dot", SHOAL_FLOAT64, offsetof(State, x_dot)),
    field("theta", SHOAL_FLOAT64, offsetof(State, theta)),
    field("theta_dot", SHOAL_FLOAT64, offsetof(State, theta_dot)),
};
constexpr shoal_number kParameters[] = {
    {"gravity", 9.8},
    {"masspole", 0.1},
    {"total_mass", 1.1},
    {"length", 0.5},
    {"polemass_length", 0.05},
    {"force_mag", 10.0},
    {"tau", 0.02},
    {"theta_threshold_radians", 12 * 2 * 3.141592653589793 / 360},
    {"x_threshold", 2.4},
    {"is_semi_implicit", 0.0},
    {"sutton_barto_reward", 0.0},
};
constexpr shoal_number kOptions[] = {{"low", -0.05}, {"high", 0.05}};

}  // namespace

const shoal_kernel kCartPole = KernelBuilder("CartPole", sizeof(State))
                                   .observations(kObservation)
                                   .actions(kAction)
                                   .fields(kFields)
                                   .parameters(kParameters)
                                   .options(kOptions)
                                   .functions(reset, step)
                                   .images(draw, 600, 400, 50);

}  // namespace shoal
