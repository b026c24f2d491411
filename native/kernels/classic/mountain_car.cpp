// MountainCar, as in gymnasium.envs.classic_control.mountain_car.
#include "mountain_car.h"

#include <cmath>
#include <initializer_list>

#include "../builtin_kernels.h"
#include "../exact_math.h"
#include "../kernel_builder.h"

namespace shoal {

namespace {

struct State {
  double position, velocity;
};

struct Parameters {
  double min_position, max_position, max_speed, goal_position, goal_velocity, force, gravity;
};

struct Options {
  double low, high;
};

void observe(const State& state, float* observation) {
  observation[0] = static_cast<float>(state.position);
  observation[1] = static_cast<float>(state.velocity);
}

int64_t reset(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const auto& options = *reinterpret_cast<const Options*>(slots->options);
  for (int64_t k = 0; k < slots->count; ++k) {
    states[k] = {shoal_random_uniform(slots->random + k, options.low, options.high), 0.0};
    observe(states[k], observations + 2 * k);
  }
  return SHOAL_OK;
}

int64_t step(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const int64_t*>(slots->actions[0]);
  auto* observations = static_cast<float*>(slots->observations[0]);
  const Parameters p = *reinterpret_cast<const Parameters*>(slots->parameters);
  for (int64_t k = 0; k < slots->count; ++k) {
    double position = states[k].position, velocity = states[k].velocity;
    velocity +=
        static_cast<double>(actions[k] - 1) * p.force + std::cos(3.0 * position) * (-p.gravity);
    velocity = clipped(velocity, -p.max_speed, p.max_speed);
    position = clipped(position + velocity, p.min_position, p.max_position);
    if (position == p.min_position && velocity < 0.0) velocity = 0.0;
    slots->rewards[k] = -1.0;
    slots->terminated[k] = position >= p.goal_position && velocity >= p.goal_velocity;
    states[k] = {position, velocity};
    observe(states[k], observations + 2 * k);
  }
  return SHOAL_OK;
}

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& p = *reinterpret_cast<const Parameters*>(slots->parameters);
  draw_mountain(canvas, static_cast<const State*>(slots->state)->position, p.min_position,
                p.max_position, p.goal_position);
}

constexpr shoal_leaf kObservation[] = {array(SHOAL_FLOAT32, 2)};
constexpr shoal_leaf kAction[] = {number(SHOAL_INT64)};
constexpr shoal_leaf kFields[] = {
    field("position", SHOAL_FLOAT64, offsetof(State, position)),
    field("velocity", SHOAL_FLOAT64, offsetof(State, velocity)),
};
constexpr shoal_number kParameters[] = {
    {"min_position", -1.2}, {"max_position", 0.6}, {"max_speed", 0.07}, {"goal_position", 0.5},
    {"goal_velocity", 0.0}, {"force", 0.001},      {"gravity", 0.0025},
};
constexpr shoal_number kOptions[] = {{"low", -0.6}, {"high", -0.4}};

}  // namespace

void draw_mountain(shoal_canvas* canvas, double position, double low, double high, double goal) {
  const double scale = canvas->width / (high - low);
  auto x_of = [&](double place) { return (place - low) * scale; };
  auto y_of = [&](double place) {
    return canvas->height - (std::sin(3.0 * place) * 0.45 + 0.55) * scale;
  };
  canvas->fill(canvas, 0xffffff);
  constexpr int kPieces = 100;
  for (int k = 0; k < kPieces; ++k) {
    const double from = low + (high - low) * k / kPieces;
    const double to = low + (high - low) * (k + 1) / kPieces;
    canvas->line(canvas, x_of(from), y_of(from), x_of(to), y_of(to), 1.5, 0x000000);
  }

  const double flag_x = x_of(goal), flag_y = y_of(goal);
  canvas->line(canvas, flag_x, flag_y, flag_x, flag_y - 50.0, 1.0, 0x000000);
  const double flag[] = {flag_x,        flag_y - 50.0, flag_x,
                         flag_y - 40.0, flag_x + 25.0, flag_y - 45.0};
  canvas->polygon(canvas, flag, 3, 0xcccc00);

  const double slope = std::cos(3.0 * position);
  const double sine = std::sin(slope), cosine = std::cos(slope);
  const double car_x = x_of(position), car_y = y_of(position) - 10.0;
  auto turned = [&](double across, double up, double* point) {
    point[0] = car_x + across * cosine - up * sine;
    point[1] = car_y - across * sine - up * cosine;
  };
  double body[8];
  turned(-20.0, 0.0, body);
  turned(-20.0, 20.0, body + 2);
  turned(20.0, 20.0, body + 4);
  turned(20.0, 0.0, body + 6);
  canvas->polygon(canvas, body, 4, 0x000000);
  for (const double across : {-10.0, 10.0}) {
    double wheel[2];
    turned(across, 0.0, wheel);
    canvas->disc(canvas, wheel[0], wheel[1], 8.0, 0x808080);
  }
}

const shoal_kernel kMountainCar = KernelBuilder("MountainCar", sizeof(State))
                                      .observations(kObservation)
                                      .actions(kAction)
                                      .fields(kFields)
                                      .parameters(kParameters)
                                      .options(kOptions)
                                      .functions(reset, step)
                                      .images(draw, 600, 400, 30);

}  // namespace shoal
