// Acrobot, as in gymnasium.envs.classic_control.acrobot.
#include <array>
#include <cmath>
#include <initializer_list>

#include "../builtin_kernels.h"
#include "../exact_math.h"
#include "../kernel_builder.h"

namespace shoal {

namespace {

constexpr double kPi = 3.141592653589793;

struct State {
  double theta1, theta2, theta1_dot, theta2_dot;
};

struct Parameters {
  double dt, LINK_LENGTH_1, LINK_LENGTH_2, LINK_MASS_1, LINK_MASS_2, LINK_COM_POS_1, LINK_COM_POS_2;
  double LINK_MOI, MAX_VEL_1, MAX_VEL_2, torque_noise_max, is_nips;
};

struct Options {
  double low, high;
};

using Vector = std::array<double, 4>;

void observe(const State& state, float* observation) {
  observation[0] = static_cast<float>(std::cos(state.theta1));
  observation[1] = static_cast<float>(std::sin(state.theta1));
  observation[2] = static_cast<float>(std::cos(state.theta2));
  observation[3] = static_cast<float>(std::sin(state.theta2));
  observation[4] = static_cast<float>(state.theta1_dot);
  observation[5] = static_cast<float>(state.theta2_dot);
}

int64_t reset(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const auto& options = *reinterpret_cast<const Options*>(slots->options);
  for (int64_t k = 0; k < slots->count; ++k) {
    State& s = states[k];
    for (double* value : {&s.theta1, &s.theta2, &s.theta1_dot, &s.theta2_dot}) {
      // Gymnasium's initial state is float32.
      *value =
          static_cast<float>(shoal_random_uniform(slots->random + k, options.low, options.high));
    }
    observe(s, observations + 6 * k);
  }
  return SHOAL_OK;
}

Vector derivative(const Vector& s, double torque, const Parameters& p) {
  const double m1 = p.LINK_MASS_1, m2 = p.LINK_MASS_2, l1 = p.LINK_LENGTH_1;
  const double lc1 = p.LINK_COM_POS_1, lc2 = p.LINK_COM_POS_2, moi = p.LINK_MOI;
  constexpr double g = 9.8;
  const auto [theta1, theta2, theta1_dot, theta2_dot] = s;
  const double cosine = std::cos(theta2), sine = std::sin(theta2);
  const double d1 =
      m1 * (lc1 * lc1) + m2 * (l1 * l1 + lc2 * lc2 + 2.0 * l1 * lc2 * cosine) + moi + moi;
  const double d2 = m2 * (lc2 * lc2 + l1 * lc2 * cosine) + moi;
  const double phi2 = m2 * lc2 * g * std::cos(theta1 + theta2 - kPi / 2.0);
  const double phi1 = -m2 * l1 * lc2 * squared(theta2_dot) * sine -
                      2.0 * m2 * l1 * lc2 * theta2_dot * theta1_dot * sine +
                      (m1 * lc1 + m2 * l1) * g * std::cos(theta1 - kPi / 2.0) + phi2;
  const double inertia = m2 * (lc2 * lc2) + moi - squared(d2) / d1;
  double acc2 = 0.0;
  if (p.is_nips != 0.0) {
    acc2 = (torque + d2 / d1 * phi1 - phi2) / inertia;
  } else {
    acc2 = (torque + d2 / d1 * phi1 - m2 * l1 * lc2 * squared(theta1_dot) * sine - phi2) / inertia;
  }
  const double acc1 = -(d2 * acc2 + phi1) / d1;
  return {theta1_dot, theta2_dot, acc1, acc2};
}

/// y + step * slope, element by element.
Vector along(const Vector& y, double step, const Vector& slope) {
  Vector result;
  for (size_t k = 0; k < y.size(); ++k) result[k] = y[k] + step * slope[k];
  return result;
}

/// One step of the fourth-order Runge-Kutta method.
Vector integrated(const Vector& y, double torque, const Parameters& p) {
  const double half = p.dt / 2.0, sixth = p.dt / 6.0;
  const Vector k1 = derivative(y, torque, p);
  const Vector k2 = derivative(along(y, half, k1), torque, p);
  const Vector k3 = derivative(along(y, half, k2), torque, p);
  const Vector k4 = derivative(along(y, p.dt, k3), torque, p);
  Vector result;
  for (size_t k = 0; k < y.size(); ++k) {
    result[k] = y[k] + sixth * (k1[k] + 2.0 * k2[k] + 2.0 * k3[k] + k4[k]);
  }
  return result;
}

/// Wraps an angle to [-pi, pi] by repeated subtraction, as Gymnasium does.
double wrapped(double angle) {
  // For huge angles the subtraction has no effect, and the loop would not end.
  if (!(std::fabs(angle) < 1e9)) return angle;
  constexpr double turn = kPi - -kPi;
  while (angle > kPi) angle -= turn;
  while (angle < -kPi) angle += turn;
  return angle;
}

int64_t step(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const int64_t*>(slots->actions[0]);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const Parameters p = *reinterpret_cast<const Parameters*>(slots->parameters);
  for (int64_t k = 0; k < slots->count; ++k) {
    const State& before = states[k];
    auto torque = static_cast<double>(actions[k] - 1);
    if (p.torque_noise_max > 0.0) {
      torque += shoal_random_uniform(slots->random + k, -p.torque_noise_max, p.torque_noise_max);
    }
    const Vector after =
        integrated({before.theta1, before.theta2, before.theta1_dot, before.theta2_dot}, torque, p);
    const State s = {wrapped(after[0]), wrapped(after[1]),
                     clipped(after[2], -p.MAX_VEL_1, p.MAX_VEL_1),
                     clipped(after[3], -p.MAX_VEL_2, p.MAX_VEL_2)};
    const bool is_up = -std::cos(s.theta1) - std::cos(s.theta2 + s.theta1) > 1.0;
    slots->rewards[k] = is_up ? 0.0 : -1.0;
    slots->terminated[k] = is_up;
    states[k] = s;
    observe(s, observations + 6 * k);
  }
  return SHOAL_OK;
}

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& state = *static_cast<const State*>(slots->state);
  const auto& p = *reinterpret_cast<const Parameters*>(slots->parameters);
  const double scale = canvas->width / (2.0 * (p.LINK_LENGTH_1 + p.LINK_LENGTH_2 + 0.2));
  double x = canvas->width / 2.0, y = canvas->height / 2.0;
  canvas->fill(canvas, 0xffffff);
  canvas->line(canvas, 0.0, y - scale, canvas->width, y - scale, 1.0, 0x000000);
  const double angles[] = {state.theta1, state.theta1 + state.theta2};
  const double lengths[] = {p.LINK_LENGTH_1 * scale, p.LINK_LENGTH_2 * scale};
  for (int k = 0; k < 2; ++k) {
    const double to_x = x + lengths[k] * std::sin(angles[k]);
    const double to_y = y + lengths[k] * std::cos(angles[k]);
    canvas->line(canvas, x, y, to_x, to_y, 0.2 * scale, 0x00cccc);
    canvas->disc(canvas, x, y, 0.1 * scale, 0xcccc00);
    x = to_x;
    y = to_y;
  }
}

constexpr shoal_leaf kObservation[] = {array(SHOAL_FLOAT32, 6)};
constexpr shoal_leaf kAction[] = {number(SHOAL_INT64)};
constexpr shoal_leaf kFields[] = {
    field("theta1", SHOAL_FLOAT64, offsetof(State, theta1)),
    field("theta2", SHOAL_FLOAT64, offsetof(State, theta2)),
    field("theta1_dot", SHOAL_FLOAT64, offsetof(State, theta1_dot)),
    field("theta2_dot", SHOAL_FLOAT64, offsetof(State, theta2_dot)),
};
constexpr shoal_number kParameters[] = {
    {"dt", 0.2},
    {"LINK_LENGTH_1", 1.0},
    {"LINK_LENGTH_2", 1.0},
    {"LINK_MASS_1", 1.0},
    {"LINK_MASS_2", 1.0},
    {"LINK_COM_POS_1", 0.5},
    {"LINK_COM_POS_2", 0.5},
    {"LINK_MOI", 1.0},
    {"MAX_VEL_1", 4 * kPi},
    {"MAX_VEL_2", 9 * kPi},
    {"torque_noise_max", 0.0},
    {"is_nips", 0.0},
};
constexpr shoal_number kOptions[] = {{"low", -0.1}, {"high", 0.1}};

}  // namespace

const shoal_kernel kAcrobot = KernelBuilder("Acrobot", sizeof(State))
                                  .observations(kObservation)
                                  .actions(kAction)
                                  .fields(kFields)
                                  .parameters(kParameters)
                                  .options(kOptions)
                                  .functions(reset, step)
                                  .images(draw, 500, 500, 15);

}  // namespace shoal
