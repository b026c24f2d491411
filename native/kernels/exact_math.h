// Arithmetic that rounds exactly as Python and NumPy do.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace shoal {

// Volatile, because compilers replace pow(x, 2.0) by x * x, which rounds differently.
inline const volatile double kTwo = 2.0;
inline const volatile float kTwoFloat = 2.0f;

/// x ** 2 as Python computes it, with pow. In one case of a thousand it differs from x * x.
///
/// The error of pow is slightly above half a unit in the last place. Its result can therefore
/// differ from the rounded product only if the exact product is close to the midpoint of two
/// floating-point numbers. pow, which is slow, is called only in this case.
inline double squared(double x) {
  const double product = x * x;
  const double spread = 134217729.0 * x;  // 2**27 + 1 splits x into two halves of 26 bits
  const double high = spread - (spread - x), low = x - high;
  const double error = ((high * high - product) + 2.0 * high * low) + low * low;
  uint64_t bits = 0;
  std::memcpy(&bits, &product, sizeof bits);
  bits &= UINT64_C(0x7ff0000000000000);
  double unit = 0.0;  // the largest power of two not above the product
  std::memcpy(&unit, &bits, sizeof unit);
  const bool is_clear = std::fabs(error) < 0.45 * 0x1p-52 * unit && product < 1e300;
  return is_clear && product > 1e-290 ? product : std::pow(x, kTwo);
}

/// x ** 2 of a NumPy float32 scalar.
inline float squared(float x) { return std::pow(x, kTwoFloat); }

/// a % b as Python computes it, for a positive b.
inline double modulo(double a, double b) {
  if (a >= 0.0 && a < b) return a;
  if (a >= b && a < 2.0 * b) return a - b;  // exact, as fmod is
  const double rest = std::fmod(a, b);
  if (rest == 0.0) return 0.0;
  return rest < 0.0 ? rest + b : rest;
}

/// numpy.clip: NaN stays NaN.
template <class T>
T clipped(T value, T low, T high) {
  return value < low ? low : value > high ? high : value;
}

}  // namespace shoal
