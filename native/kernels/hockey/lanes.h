// Numbers side by side, which are computed with at once. Functions that are templates over Real
// are for them and for single numbers alike; they decide with ?: and have no branches.
#pragma once

#include <cstdint>

// Functions that take lanes are all inlined: there is no calling convention to be warned of.
#pragma GCC diagnostic ignored "-Wpsabi"

#define SHOAL_INLINE inline __attribute__((always_inline))

// Wider instructions where the processor has them, which round as all others do.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define SHOAL_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define SHOAL_WIDE
#endif

namespace shoal::hockey {

constexpr int kLanes = 8;

// Aligned for the widest instructions, whatever the rest of the file is compiled for.
using Lanes = float __attribute__((vector_size(4 * kLanes), aligned(4 * kLanes)));
/// Of a comparison: 0 or -1.
using Flags = int32_t __attribute__((vector_size(4 * kLanes), aligned(4 * kLanes)));

SHOAL_INLINE int32_t whole(float number) { return static_cast<int32_t>(number); }
SHOAL_INLINE Flags whole(Lanes numbers) { return __builtin_convertvector(numbers, Flags); }

template <class Real>
SHOAL_INLINE Real larger(Real a, Real b) {
  return a > b ? a : b;
}
template <class Real>
SHOAL_INLINE Real smaller(Real a, Real b) {
  return a < b ? a : b;
}
template <class Real>
SHOAL_INLINE Real magnitude(Real a) {
  return a < 0.0f ? -a : a;
}

}  // namespace shoal::hockey
