/* The environment of examples/kernel_in_numba.py as a kernel in C. */
#include <math.h>
#include <shoal_kernel.h>

#define PI 3.14159265358979323846

typedef struct {
  double angle, speed;
} swing;

static void observe(const swing* s, const shoal_slots* slots, int64_t k) {
  float* observation = (float*)slots->observations[0] + 3 * k;
  observation[0] = (float)cos(s->angle);
  observation[1] = (float)sin(s->angle);
  observation[2] = (float)s->speed;
  ((double*)slots->infos[0])[k] = 0.5 * s->speed * s->speed + slots->parameters[0] * cos(s->angle);
}

static int64_t reset(const shoal_slots* slots) {
  swing* swings = slots->state;
  for (int64_t k = 0; k < slots->count; ++k) {
    const double widest = slots->options[0];
    swings[k].angle = shoal_random_uniform(&slots->random[k], -widest, widest);
    swings[k].speed = shoal_random_uniform(&slots->random[k], -1.0, 1.0);
    observe(&swings[k], slots, k);
  }
  return SHOAL_OK;
}

static int64_t step(const shoal_slots* slots) {
  swing* swings = slots->state;
  const float* actions = slots->actions[0];
  for (int64_t k = 0; k < slots->count; ++k) {
    swing* s = &swings[k];
    const double torque = fmin(fmax(actions[k], -2.0), 2.0);
    double angle = fmod(s->angle + PI, 2 * PI);
    if (angle < 0) angle += 2 * PI;
    angle -= PI;
    slots->rewards[k] = -(angle * angle + 0.1 * s->speed * s->speed + 0.001 * torque * torque);
    s->speed += (1.5 * slots->parameters[0] * sin(s->angle) + 3.0 * torque) * 0.05;
    s->speed = fmin(fmax(s->speed, -8.0), 8.0);
    s->angle += s->speed * 0.05;
    observe(s, slots, k);
  }
  return SHOAL_OK;
}

static const double highs[] = {1.0, 1.0, 8.0}, lows[] = {-1.0, -1.0, -8.0};
static const shoal_leaf observations[] = {
    {.dtype = SHOAL_FLOAT32, .dimensions = 1, .shape = {3}, .lows = lows, .highs = highs},
};
static const shoal_leaf actions[] = {
    {.dtype = SHOAL_FLOAT32, .dimensions = 1, .shape = {1}, .low = -2.0, .high = 2.0},
};
static const shoal_leaf infos[] = {{.name = "energy", .dtype = SHOAL_FLOAT64}};
static const shoal_leaf fields[] = {
    {.name = "angle", .dtype = SHOAL_FLOAT64, .offset = offsetof(swing, angle)},
    {.name = "speed", .dtype = SHOAL_FLOAT64, .offset = offsetof(swing, speed)},
};
static const shoal_number parameters[] = {{"g", 10.0}};
static const shoal_number options[] = {{"widest", PI}};

static const shoal_kernel kernel = {
    .version = SHOAL_KERNEL_VERSION,
    .name = "Swing",
    .state_bytes = sizeof(swing),
    .observation_count = 1,
    .observations = observations,
    .action_count = 1,
    .actions = actions,
    .info_count = 1,
    .infos = infos,
    .field_count = 2,
    .fields = fields,
    .parameter_count = 1,
    .parameters = parameters,
    .option_count = 1,
    .options = options,
    .max_episode_steps = 200,
    .reset = reset,
    .step = step,
};

const shoal_kernel* shoal_kernel_entry(void) { return &kernel; }
