// SIMD vectors of floats. Function templates over Real work for vectors and single numbers; they
// select with ?: instead of branches.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

// All functions with vector arguments are inlined, so warnings about calling conventions do not
// apply.
#pragma GCC diagnostic ignored "-Wpsabi"

#define SHOAL_INLINE inline __attribute__((always_inline))

// Compiles a function for AVX2 as well and selects at run time. Both versions round identically.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SHOAL_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define SHOAL_WIDE
#endif

namespace shoal::hockey {

constexpr int kLanes = 8;

// Aligned for AVX2, whatever instructions the rest of the file is compiled for.
using Lanes = float __attribute__((vector_size(4 * kLanes), aligned(4 * kLanes)));
/// The result of a comparison: 0 or -1.
using Flags = int32_t __attribute__((vector_size(4 * kLanes), aligned(4 * kLanes)));

SHOAL_INLINE int32_t truncated(float number) { return static_cast<int32_t>(number); }
SHOAL_INLINE Flags truncated(Lanes numbers) { return __builtin_convertvector(numbers, Flags); }

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

SHOAL_INLINE float root(float number) { return std::sqrt(number); }
SHOAL_INLINE Lanes root(Lanes numbers) {
  for (int k = 0; k < kLanes; ++k) numbers[k] = std::sqrt(numbers[k]);
  return numbers;
}

using Quad = float __attribute__((vector_size(16)));

/// Transposes a 4 x 4 matrix.
SHOAL_INLINE void transpose(Quad (&rows)[4]) {
  const Quad left_1 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Quad left_2 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Quad right_1 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Quad right_2 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(left_1, left_2, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(left_1, left_2, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(right_1, right_2, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(right_1, right_2, 2, 3, 6, 7);
}

/// Reads the first `count` elements, a multiple of 4, of kLanes rows into columns.
template <int count>
SHOAL_INLINE void read_rows(const float* const (&rows)[kLanes], Lanes (&columns)[count]) {
  static_assert(count % 4 == 0);
  for (int first = 0; first < count; first += 4) {
    for (int half = 0; half < kLanes; half += 4) {
      Quad quads[4];
      for (int k = 0; k < 4; ++k) std::memcpy(&quads[k], rows[half + k] + first, sizeof(Quad));
      transpose(quads);
      for (int k = 0; k < 4; ++k) {
        std::memcpy(reinterpret_cast<float*>(&columns[first + k]) + half, &quads[k], sizeof(Quad));
      }
    }
  }
}

/// Writes columns to the first `rows_count` rows.
template <int count>
SHOAL_INLINE void write_rows(const Lanes (&columns)[count], float* const (&rows)[kLanes],
                             int rows_count) {
  static_assert(count % 4 == 0);
  for (int first = 0; first < count; first += 4) {
    for (int half = 0; half < kLanes; half += 4) {
      Quad quads[4];
      for (int k = 0; k < 4; ++k) {
        std::memcpy(&quads[k], reinterpret_cast<const float*>(&columns[first + k]) + half,
                    sizeof(Quad));
      }
      transpose(quads);
      for (int k = 0; k < 4 && half + k < rows_count; ++k) {
        std::memcpy(rows[half + k] + first, &quads[k], sizeof(Quad));
      }
    }
  }
}

/// Whether all numbers are between -most and most, and none is NaN.
template <int count>
SHOAL_INLINE bool are_within(const float* numbers, float most) {
  using Four = int32_t __attribute__((vector_size(16)));
  Four within = Four{} - 1;
  for (int k = 0; k + 4 <= count; k += 4) {
    Quad four;
    std::memcpy(&four, numbers + k, sizeof four);
    within &= (four < most) & (four > -most);
  }
  int32_t all = within[0] & within[1] & within[2] & within[3];
  for (int k = count / 4 * 4; k < count; ++k) {
    all &= (numbers[k] < most && numbers[k] > -most) ? -1 : 0;
  }
  return all != 0;
}

/// The maximum of all lanes.
SHOAL_INLINE float largest(const Lanes& a) {
  const Lanes of_two = larger(a, __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3));
  const Lanes of_four =
      larger(of_two, __builtin_shufflevector(of_two, of_two, 2, 3, 0, 1, 6, 7, 4, 5));
  return larger(of_four[0], of_four[1]);
}
SHOAL_INLINE float smallest(const Lanes& a) { return -largest(-a); }

}  // namespace shoal::hockey
