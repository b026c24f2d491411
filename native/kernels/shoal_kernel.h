/* The C interface between Shoal and a native environment.
 *
 * A kernel is an environment that steps many slots with one call. A slot is the place of one
 * environment in a vector. A kernel describes its observations, actions, infos and state, and
 * provides two functions, each of which handles a run of adjacent slots:
 *
 *   reset   starts an episode in each slot of the run and writes the first observations
 *   step    applies an action in each slot of the run and writes the results
 *
 * Shoal implements everything else: memory, seeding, autoreset, time limits, episode statistics,
 * threads, batches, saving and restoring. In return, a kernel must follow three rules:
 *
 *   - Everything that it must remember is in the state of its slots.
 *   - All randomness comes from the generators of its slots.
 *   - It has no mutable global data, because threads step different runs of a vector concurrently.
 *
 * A shared library with a kernel exports one function and is loaded with
 * shoal.kernels.load("./my.so"):
 *
 *   const shoal_kernel* shoal_kernel_entry(void);
 *
 * The returned kernel, and everything that it points to, must stay valid while the library is
 * loaded. The header needs C11 or C++17 and a compiler with 128-bit integers (gcc or clang). There
 * is no library to link with. "shoal new-kernel NAME" writes a folder with a kernel to start from.
 */
#ifndef SHOAL_KERNEL_H
#define SHOAL_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented with every change that breaks compiled kernels. */
#define SHOAL_KERNEL_VERSION 2

/* ---- Random numbers -------------------------------------------------------------------------- */

/* The random number generator of one slot. The user selects the algorithm when creating the vector:
 * PCG64, seeded as NumPy seeds it, or a counter-based generator. The increment of the latter is
 * zero, that of PCG64 never is. Kernels use only the functions below. */
typedef struct shoal_random {
  uint64_t state[2]; /* PCG64: low word, high word; counter-based: counter, key */
  uint64_t increment[2];
  uint32_t half; /* the unused half of the last 64-bit draw of shoal_random_half */
  uint32_t has_half;
} shoal_random;

/* Returns 64 random bits. */
static inline uint64_t shoal_random_bits(shoal_random* random) {
  if (random->increment[0] == 0) {
    uint64_t z = ++random->state[0] * UINT64_C(0x9e3779b97f4a7c15) + random->state[1];
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93) ^ random->state[1];
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return z ^ (z >> 32);
  }
  __extension__ typedef unsigned __int128 wide;
  const wide multiplier = (wide)UINT64_C(2549297995355413924) << 64 | UINT64_C(4865540595714422341);
  const wide increment = (wide)random->increment[1] << 64 | random->increment[0];
  const wide state = ((wide)random->state[1] << 64 | random->state[0]) * multiplier + increment;
  random->state[0] = (uint64_t)state;
  random->state[1] = (uint64_t)(state >> 64);
  const uint64_t folded = random->state[0] ^ random->state[1];
  const unsigned turn = (unsigned)(random->state[1] >> 58);
  return folded >> turn | folded << (-turn & 63);
}

/* Returns 32 random bits. Two calls consume one 64-bit draw. */
static inline uint32_t shoal_random_half(shoal_random* random) {
  if (random->has_half) {
    random->has_half = 0;
    return random->half;
  }
  const uint64_t bits = shoal_random_bits(random);
  random->half = (uint32_t)(bits >> 32);
  random->has_half = 1;
  return (uint32_t)bits;
}

/* Returns a number from [0, 1), as numpy.random.Generator.random(). */
static inline double shoal_random_double(shoal_random* random) {
  return (double)(shoal_random_bits(random) >> 11) * (1.0 / 9007199254740992.0);
}

/* Returns a number from [low, high), as numpy.random.Generator.uniform(low, high). */
static inline double shoal_random_uniform(shoal_random* random, double low, double high) {
  return low + (high - low) * shoal_random_double(random);
}

/* Returns an integer from 0 to count - 1, as numpy.random.Generator.integers(count). `count` must
 * be at least 1. */
static inline uint64_t shoal_random_below(shoal_random* random, uint64_t count) {
  __extension__ typedef unsigned __int128 wide;
  if (count <= 1) return 0;
  if (count == UINT64_C(1) << 32) return shoal_random_half(random);
  if (count < UINT64_C(1) << 32) {
    const uint32_t few = (uint32_t)count;
    uint64_t product = (uint64_t)shoal_random_half(random) * few;
    if ((uint32_t)product < few) {
      const uint32_t threshold = -few % few;
      while ((uint32_t)product < threshold) product = (uint64_t)shoal_random_half(random) * few;
    }
    return product >> 32;
  }
  wide product = (wide)shoal_random_bits(random) * count;
  if ((uint64_t)product < count) {
    const uint64_t threshold = -count % count;
    while ((uint64_t)product < threshold) product = (wide)shoal_random_bits(random) * count;
  }
  return (uint64_t)(product >> 64);
}

/* ---- Description of a kernel ----------------------------------------------------------------- */

typedef enum shoal_dtype {
  SHOAL_FLOAT64,
  SHOAL_FLOAT32,
  SHOAL_INT64,
  SHOAL_INT32,
  SHOAL_INT16,
  SHOAL_INT8,
  SHOAL_UINT8,
  SHOAL_BOOL
} shoal_dtype;

/* The Gymnasium space of a leaf. */
typedef enum shoal_space {
  SHOAL_BOX,           /* any dtype and shape, elements from low to high */
  SHOAL_DISCRETE,      /* int64, no dimensions, from 0 to high */
  SHOAL_MULTI_BINARY,  /* int8, any shape with at least one dimension, each element 0 or 1 */
  SHOAL_MULTI_DISCRETE /* int64, one dimension, element k from 0 to highs[k] */
} shoal_space;

#define SHOAL_MAX_DIMENSIONS 4

/* One array of fixed shape in the observations, actions, infos or state. The elements of a slot are
 * in C order, and the rows of adjacent slots are contiguous.
 *
 * Observations (and actions) with one leaf that has no name are that leaf's space. Several leaves
 * without names are a Tuple space; leaves with names are a Dict space. */
typedef struct shoal_leaf {
  const char* name; /* NULL: no name */
  shoal_dtype dtype;
  int dimensions; /* 0: a scalar */
  int64_t shape[SHOAL_MAX_DIMENSIONS];
  /* For observations and actions only. `low` and `high` are the bounds of all elements; if both are
   * zero, the leaf is unbounded. If not NULL, `lows` and `highs` override them for each element. */
  shoal_space space;
  double low, high;
  const double* lows;
  const double* highs;
  size_t offset; /* for fields only: the position in the state, in bytes */
} shoal_leaf;

/* The name of an info that contains the rewards of several players. Like the reward, it always
 * belongs to the step: if the slot is reset in the same step, the reset does not overwrite it. */
#define SHOAL_REWARDS "rewards"

/* A parameter of the kernel or an option of a reset. */
typedef struct shoal_number {
  const char* name;
  double value; /* the default */
} shoal_number;

/* ---- Arguments and results of reset, step and draw ------------------------------------------- */

#define SHOAL_MESSAGE_BYTES 256

/* A run of adjacent slots: row k of every array belongs to slot first + k.
 *
 * reset and step must write all observations and infos, whose previous contents are undefined.
 * Rewards and flags are zero before a step; step writes those that differ from zero.
 *
 * Before a reset with a seed, the state of a slot is zero, so that the episode depends only on the
 * seed. Before any other reset, it is the state at the end of the last episode. */
typedef struct shoal_slots {
  int64_t first;
  int64_t count;
  void* state;                /* count rows of state_bytes bytes */
  shoal_random* random;       /* count generators */
  const void* const* actions; /* an array of count rows per leaf; NULL in reset */
  void* const* observations;  /* an array of count rows per leaf */
  double* rewards;            /* NULL in reset, as are the flags */
  uint8_t* terminated;        /* nonzero: the episode has ended */
  uint8_t* truncated;         /* nonzero: the episode was cut short; Shoal adds the time limit */
  void* const* infos;         /* an array of count rows per leaf */
  const double* parameters;   /* in the order of shoal_kernel.parameters */
  const double* options;      /* in the order of shoal_kernel.options; NULL in step */
  const void* tables;         /* shoal_kernel.tables */
  char* message;              /* written by shoal_fail */
} shoal_slots;

/* The result of reset and step if no slot has failed. */
#define SHOAL_OK INT64_C(-1)

/* Reports that row k has failed. Use as: return shoal_fail(slots, k, "the reason");
 *
 * The rows before it must be complete; Shoal calls the function again for the rows after it. When
 * all slots are done, the user receives an exception with the slot and the message instead of a
 * batch. The next step resets the failed slot; with autoreset disabled, the user must reset it. */
__attribute__((warn_unused_result)) static inline int64_t shoal_fail(const shoal_slots* slots,
                                                                     int64_t row, const char* why) {
  snprintf(slots->message, SHOAL_MESSAGE_BYTES, "%s", why);
  return row;
}

/* ---- Rendering ------------------------------------------------------------------------------- */

/* An RGB image to draw on. Shapes are antialiased. Coordinates are in pixels, with the origin in
 * the upper left corner and y pointing down. Colours are 0xRRGGBB. */
typedef struct shoal_canvas shoal_canvas;
struct shoal_canvas {
  int width, height;
  void (*fill)(shoal_canvas*, uint32_t colour);
  /* Fills a polygon with `count` corners: x0, y0, x1, y1, ... It may be concave. */
  void (*polygon)(shoal_canvas*, const double* points, int count, uint32_t colour);
  void (*disc)(shoal_canvas*, double x, double y, double radius, uint32_t colour);
  void (*line)(shoal_canvas*, double x0, double y0, double x1, double y1, double width,
               uint32_t colour);
  /* Draws text, `size` pixels high, with its upper left corner at (x, y). Supports letters (shown
   * as capitals), digits and - + . : */
  void (*text)(shoal_canvas*, double x, double y, double size, const char* text, uint32_t colour);
};

/* ---- The kernel ------------------------------------------------------------------------------ */

typedef struct shoal_kernel {
  int version;        /* SHOAL_KERNEL_VERSION */
  const char* name;   /* such as "MyEnv-v0" */
  size_t state_bytes; /* the size of a slot's state; states are contiguous, so mind alignment */

  int observation_count, action_count, info_count, field_count;
  const shoal_leaf* observations;
  const shoal_leaf* actions;
  const shoal_leaf* infos;
  const shoal_leaf* fields; /* the parts of the state that users can read and write; may be empty */

  int parameter_count, option_count;
  const shoal_number* parameters; /* set by the user when creating a vector, and per slot later */
  const shoal_number* options;    /* set by the user for each reset */

  int64_t max_episode_steps; /* the default time limit; 0: none */

  int64_t (*reset)(const shoal_slots* slots);
  int64_t (*step)(const shoal_slots* slots);

  /* Draws the first slot of a run from its state, parameters and tables; it must not use any other
   * member of shoal_slots. NULL: the kernel does not support rendering. */
  void (*draw)(const shoal_slots* slots, shoal_canvas* canvas);
  int width, height, frames_per_second; /* of the image; ignored without draw */

  const void* tables; /* constant data, passed to every call */

  /* Nonzero: step does not read parameters. Slots with different parameters can then be stepped in
   * one run. */
  int only_reset_has_parameters;
} shoal_kernel;

#ifdef __cplusplus
}
#endif

#endif /* SHOAL_KERNEL_H */
