/* The interface between Shoal and a native environment, in C.
 *
 * A kernel is an environment that steps a run of neighbouring slots with one call. It says what its
 * state, observations, actions and infos look like, and provides two functions:
 *
 *   reset   begins an episode in each slot of a run, and writes the first observations
 *   step    takes an action in each slot of a run, and writes what came of it
 *
 * Everything else is Shoal's: memory, seeds, autoreset, time limits, statistics, threads, batches,
 * saving and restoring. A kernel therefore keeps all that it must remember in the state of its
 * slots, draws all that is random from the generators of its slots, and has no mutable globals:
 * runs of one vector are worked on by several threads at the same time.
 *
 * A library with a kernel exports one function, and is loaded with shoal.kernels.load("./my.so"):
 *
 *   const shoal_kernel* shoal_kernel_entry(void);
 *
 * The header needs C11 or C++17 and a compiler with 128-bit integers (gcc, clang), and nothing to
 * link with. "shoal new-kernel NAME" writes a folder with a kernel to start from.
 */
#ifndef SHOAL_KERNEL_H
#define SHOAL_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change that an older library could not follow. */
#define SHOAL_KERNEL_VERSION 2

/* ---- Random numbers -------------------------------------------------------------------------- */

/* The generator of one slot. Which one it is, the user chooses when making the vector: PCG64,
 * seeded as NumPy seeds it, or a counter-based one (whose increment is zero, which PCG64's never
 * is). */
typedef struct shoal_random {
  uint64_t state[2]; /* low word, high word; or counter, key */
  uint64_t increment[2];
  uint32_t half; /* the second half of a 64-bit draw of which the first was used */
  uint32_t has_half;
} shoal_random;

/* 64 random bits. */
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

/* 32 random bits; two calls use up one draw of 64. */
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

/* A number from [0, 1): numpy.random.Generator.random(). */
static inline double shoal_random_double(shoal_random* random) {
  return (double)(shoal_random_bits(random) >> 11) * (1.0 / 9007199254740992.0);
}

/* A number from [low, high): numpy.random.Generator.uniform(low, high). */
static inline double shoal_random_uniform(shoal_random* random, double low, double high) {
  return low + (high - low) * shoal_random_double(random);
}

/* An integer from 0 to count - 1, count at least 1: numpy.random.Generator.integers(count). */
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

/* ---- What a kernel says of itself ------------------------------------------------------------ */

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

/* Which of Gymnasium's spaces a leaf is. */
typedef enum shoal_space {
  SHOAL_BOX,           /* any dtype and shape, from low to high */
  SHOAL_DISCRETE,      /* an int64 from 0 to high */
  SHOAL_MULTI_BINARY,  /* int8 of any shape, each 0 or 1 */
  SHOAL_MULTI_DISCRETE /* int64 of one dimension, element k from 0 to highs[k] */
} shoal_space;

#define SHOAL_MAX_DIMENSIONS 4

/* One fixed-shape array of a space, of the infos, or of the state. For each slot its values lie in
 * C order, one slot after the other. */
typedef struct shoal_leaf {
  const char* name; /* NULL: the space itself, or, of several, a part of a Tuple */
  shoal_dtype dtype;
  int dimensions; /* 0: a single number */
  int64_t shape[SHOAL_MAX_DIMENSIONS];
  shoal_space space;  /* of observations and actions only, as are the following */
  double low, high;   /* bounds of every element, where the next are NULL; both zero: none */
  const double* lows; /* bounds of each element */
  const double* highs;
  size_t offset; /* of a field of the state only: where it begins */
} shoal_leaf;

/* An info of this name holds rewards of several players. It belongs to a step as the reward does:
 * where a slot is reset in the step that ends its episode, it is still that of the step. */
#define SHOAL_REWARDS "rewards"

/* A number with a name: a parameter of the kernel, or an option of a reset. */
typedef struct shoal_number {
  const char* name;
  double value; /* where the user says nothing */
} shoal_number;

/* ---- What a kernel is given ------------------------------------------------------------------ */

#define SHOAL_MESSAGE_BYTES 256

/* A run of neighbouring slots. Row k of everything belongs to slot first + k. Rewards and flags are
 * zero before a step; observations and infos hold what they held before, or anything. The state of
 * a slot is zero before a reset with a seed, for all that follows to depend on nothing else; before
 * other resets it is what the last episode has left. */
typedef struct shoal_slots {
  int64_t first;
  int64_t count;
  void* state; /* count rows of the kernel's state_bytes */
  shoal_random* random;
  const void* const* actions; /* for each leaf its count rows; in a reset NULL */
  void* const* observations;
  double* rewards; /* in a reset NULL, as are the flags */
  uint8_t* terminated;
  uint8_t* truncated; /* the time limit is Shoal's, and no concern of a kernel */
  void* const* infos;
  const double* parameters; /* in the order in which the kernel names them */
  const double* options;    /* of a reset, as the kernel names them; in a step NULL */
  const void* tables;       /* the kernel's own constant data */
  char* message;            /* for shoal_fail */
} shoal_slots;

/* Returned by functions of a kernel: SHOAL_OK, or what shoal_fail returns. */
#define SHOAL_OK INT64_C(-1)

/* Reports that row k has failed: return shoal_fail(slots, k, "why"). The rows before it must be
 * done; Shoal goes on with the row after it. When all are done, the user gets an exception that
 * names the slot, in place of the batch. A slot that has failed is reset by the next step, or, with
 * autoreset disabled, refused until it is reset. */
__attribute__((warn_unused_result)) static inline int64_t shoal_fail(const shoal_slots* slots,
                                                                     int64_t row, const char* why) {
  snprintf(slots->message, SHOAL_MESSAGE_BYTES, "%s", why);
  return row;
}

/* ---- Pictures -------------------------------------------------------------------------------- */

/* What a picture is drawn on. Shapes are antialiased; points are (x, y) in pixels from the upper
 * left corner; colours are 0xRRGGBB. */
typedef struct shoal_canvas shoal_canvas;
struct shoal_canvas {
  int width, height;
  void (*fill)(shoal_canvas*, uint32_t colour);
  /* A filled polygon of any shape: x0, y0, x1, y1, ... */
  void (*polygon)(shoal_canvas*, const double* points, int count, uint32_t colour);
  void (*disc)(shoal_canvas*, double x, double y, double radius, uint32_t colour);
  void (*line)(shoal_canvas*, double x0, double y0, double x1, double y1, double width,
               uint32_t colour);
  /* Letters, all as capitals, digits and the signs - + . :, `size` pixels high, (x, y) the upper
   * left corner. */
  void (*text)(shoal_canvas*, double x, double y, double size, const char* text, uint32_t colour);
};

/* ---- The kernel ------------------------------------------------------------------------------ */

typedef struct shoal_kernel {
  int version;      /* SHOAL_KERNEL_VERSION */
  const char* name; /* as in "MyEnv-v0" */
  size_t state_bytes;

  int observation_count, action_count, info_count, field_count;
  const shoal_leaf* observations;
  const shoal_leaf* actions;
  const shoal_leaf* infos;
  const shoal_leaf* fields; /* of the state: what users may read and set; may be none */

  int parameter_count, option_count;
  const shoal_number* parameters;
  const shoal_number* options;

  int64_t max_episode_steps; /* 0: episodes end only when a step says so */

  int64_t (*reset)(const shoal_slots* slots);
  int64_t (*step)(const shoal_slots* slots);

  /* Draws the first slot of a run; NULL where there is nothing to see. Actions, rewards, flags and
   * infos are NULL. */
  void (*draw)(const shoal_slots* slots, shoal_canvas* canvas);
  int width, height, frames_per_second; /* of the pictures */

  const void* tables; /* handed on to every call */

  /* Whether only reset reads parameters: slots that differ in them are then stepped in one run. */
  int only_reset_has_parameters;
} shoal_kernel;

#ifdef __cplusplus
}
#endif

#endif /* SHOAL_KERNEL_H */
