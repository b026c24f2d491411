"""The source of a C kernel that tests modify, and its compilation."""

import os
import subprocess

import shoal

COMPILER = os.environ.get("CC", "cc")


def compiled(folder, source, *flags, suffix=".c"):
    """Compile a source to a shared library; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"kernel{suffix}"
    file.write_text(source)
    library = folder / "kernel.so"
    standard = "-std=c11" if suffix == ".c" else "-std=c++17"
    compiler = COMPILER if suffix == ".c" else os.environ.get("CXX", "c++")
    command = [compiler, standard, "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    includes = f"-I{shoal.kernels.include_dir()}"
    subprocess.run([*command, *flags, includes, str(file), "-o", str(library), "-lm"], check=True)
    return library


# A counter with every feature of kernels. Its actions select what happens.
TEMPLATE = r"""
#include <shoal_kernel.h>
#include <stddef.h>
%(head)s
typedef struct { int64_t steps; double total; } state;

static void write_results(const shoal_slots* slots, int64_t k, const state* s, double drawn) {
  float* picture = (float*)slots->observations[0] + 6 * k;
  for (int i = 0; i < 6; ++i) picture[i] = (float)(s->total + i);
  ((int64_t*)slots->observations[1])[k] = s->steps %% 7;
  ((double*)slots->infos[0])[k] = drawn;
  ((int8_t*)slots->infos[1])[2 * k] = (int8_t)(s->steps %% 100);
  ((int8_t*)slots->infos[1])[2 * k + 1] = 1;
}
static int64_t reset(const shoal_slots* slots) {
  state* states = (state*)slots->state;
  for (int64_t k = 0; k < slots->count; ++k) {
    states[k].steps = 0;
    states[k].total = slots->options[0];
    write_results(slots, k, &states[k], shoal_random_double(&slots->random[k]));
  }
  return SHOAL_OK;
}
static int64_t step(const shoal_slots* slots) {
  state* states = (state*)slots->state;
  const int64_t* actions = (const int64_t*)slots->actions[0];
  for (int64_t k = 0; k < slots->count; ++k) {
    state* s = &states[k];
    (void)s;
    %(step)s
    s->steps += 1;
    s->total += slots->parameters[0] * (double)(actions[2 * k] - actions[2 * k + 1]);
    slots->rewards[k] = s->total;
    slots->terminated[k] = s->total > 8.0 ? 3 : 0;
    slots->truncated[k] = s->total < -8.0 ? 9 : 0;
    write_results(slots, k, s, (double)shoal_random_below(&slots->random[k], 1000));
  }
  return SHOAL_OK;
}
static const double most[] = {2.0, 3.0};
static shoal_leaf observations[2], actions[1], infos[2], fields[2];
static const shoal_number parameters[] = {{"gain", 1.0}};
static const shoal_number options[] = {{"start", 0.0}};
static shoal_kernel kernel;

%(export)s const shoal_kernel* shoal_kernel_entry(void) {
  observations[0] = (shoal_leaf){"picture", SHOAL_FLOAT32, 2, {2, 3}, SHOAL_BOX, 0, 0, 0, 0, 0};
  observations[1] = (shoal_leaf){"clock", SHOAL_INT64, 0, {0}, SHOAL_DISCRETE, 0, 6, 0, 0, 0};
  actions[0] = (shoal_leaf){0, SHOAL_INT64, 1, {2}, SHOAL_MULTI_DISCRETE, 0, 0, 0, most, 0};
  infos[0] = (shoal_leaf){"drawn", SHOAL_FLOAT64, 0, {0}, SHOAL_BOX, 0, 0, 0, 0, 0};
  infos[1] = (shoal_leaf){"flags", SHOAL_INT8, 1, {2}, SHOAL_BOX, 0, 0, 0, 0, 0};
  fields[0] = (shoal_leaf){"steps", SHOAL_INT64, 0, {0}, SHOAL_BOX, 0, 0, 0, 0, 0};
  fields[1] = (shoal_leaf){"total", SHOAL_FLOAT64, 0, {0}, SHOAL_BOX, 0, 0, 0, 0, 8};
  kernel.version = SHOAL_KERNEL_VERSION;
  kernel.name = "Counter";
  kernel.state_bytes = sizeof(state);
  kernel.observation_count = 2;
  kernel.observations = observations;
  kernel.action_count = 1;
  kernel.actions = actions;
  kernel.info_count = 2;
  kernel.infos = infos;
  kernel.field_count = 2;
  kernel.fields = fields;
  kernel.parameter_count = 1;
  kernel.parameters = parameters;
  kernel.option_count = 1;
  kernel.options = options;
  kernel.max_episode_steps = 25;
  kernel.reset = reset;
  kernel.step = step;
  %(change)s
  return &kernel;
}
"""


def source(step="", head="", change="", export=""):
    """Return the source with code inserted in the step, the head and the kernel description."""
    return TEMPLATE % {"step": step, "head": head, "change": change, "export": export}
