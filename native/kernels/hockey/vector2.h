// Two-dimensional vectors and rotations, in float32 as in the reference implementation.
#pragma once

#include <cmath>

#include "simd.h"

namespace shoal::hockey {

struct Vector {
  float x, y;
};

constexpr Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y}; }
constexpr Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y}; }
constexpr Vector operator-(Vector a) { return {-a.x, -a.y}; }
constexpr Vector operator*(float scale, Vector a) { return {scale * a.x, scale * a.y}; }
inline Vector& operator+=(Vector& a, Vector b) { return a = a + b; }
inline Vector& operator-=(Vector& a, Vector b) { return a = a - b; }

constexpr float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y; }
constexpr float cross(Vector a, Vector b) { return a.x * b.y - a.y * b.x; }
constexpr Vector cross(float w, Vector a) { return {-w * a.y, w * a.x}; }
inline float length(Vector a) { return std::sqrt(dot(a, a)); }

/// An angle as its sine and cosine.
struct Rotation {
  float sine, cosine;
};

constexpr Vector rotated(Rotation r, Vector a) {
  return {r.cosine * a.x - r.sine * a.y, r.sine * a.x + r.cosine * a.y};
}
constexpr Vector rotated_back(Rotation r, Vector a) {
  return {r.cosine * a.x + r.sine * a.y, r.cosine * a.y - r.sine * a.x};
}

/// Computes sine and cosine with an error below 1e-7, for angles of up to a thousand turns.
template <class Real>
SHOAL_INLINE void sine_cosine(Real angle, Real& sine, Real& cosine) {
  constexpr float kQuarters = 0.6366197723675814f;  // 2 / pi
  constexpr float kRounding = 12582912.0f;          // adding it rounds to an integer
  // pi / 2 in three parts; the first two have few bits, so that products with them are exact.
  constexpr float kFirst = 1.5703125f, kSecond = 4.837512969970703e-4f, kThird = 7.549789948e-8f;
  const Real quarters = (angle * kQuarters + kRounding) - kRounding;
  const Real x = ((angle - quarters * kFirst) - quarters * kSecond) - quarters * kThird;
  const Real xx = x * x;
  const Real odd =
      x + x * xx * (-1.0f / 6 + xx * (1.0f / 120 + xx * (-1.0f / 5040 + xx * (1.0f / 362880))));
  const Real even =
      1.0f + xx * (-0.5f + xx * (1.0f / 24 + xx * (-1.0f / 720 + xx * (1.0f / 40320))));
  const auto quadrant = truncated(quarters);
  const Real first = (quadrant & 1) != 0 ? even : odd;
  const Real second = (quadrant & 1) != 0 ? odd : even;
  sine = (quadrant & 2) != 0 ? -first : first;
  cosine = ((quadrant + 1) & 2) != 0 ? -second : second;
}

inline Rotation rotation(float angle) {
  Rotation made;
  sine_cosine(angle, made.sine, made.cosine);
  return made;
}

}  // namespace shoal::hockey
