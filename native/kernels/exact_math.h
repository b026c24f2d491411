// Arithmetic that must round exactly as Python's and NumPy's does.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace shoal {

// Where the compiler can see that an exponent is two, it multiplies, which rounds otherwise.
inline const volatile double kTwo = 2.0;
inline const volatile float kTwoFloat = 2.0f;

/// x ** 2 as Python computes it, by pow: in one case of a thousand it is not x * x.
///
/// pow is off by a little more than half a unit in the last place, so it can only differ from the
/// rounded product where the exact one lies close to the middle between two numbers; only then is
/// it asked.
inline double squared(double x) {
  const double product = x * x;
  const double spread = 134217729.0 * x;  // 2**27 + 1: splits x into halves of 26 bits
  const double high = spread - (spread - x), low = x - high;
  const double error = ((high * high - product) + 2.0 * high * low) + low * low;
  uint64_t bits = 0;
  std::memcpy(&bits, &product, sizeof bits);
  bits &= UINT64_C(0x7ff0000000000000);
  double unit = 0.0;  // the power of two below the product
  std::memcpy(&unit, &bits, sizeof unit);
  const bool is_clear = std::fabs(error) < 0.45 * 0x1p-52 * unit && product < 1e300;
  return is_clear && product > 1e-290 ? product : std::pow(x, kTwo);
}

/// x ** 2 of a NumPy scalar of 32 bits.
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
