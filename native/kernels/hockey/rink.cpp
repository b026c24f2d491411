#include "rink.h"

namespace shoal::hockey {

namespace {

constexpr float kPixel = 1.0f / 60, kRacketPixel = 1.2f / 60;

/// A polygon from its corners in pixels, stretched by `x` and `y`, which may be negative.
template <int count>
Polygon polygon(const Vector (&corners)[count], float x, float y) {
  static_assert(count <= kMostCorners);
  Polygon made{count, {}, {}};
  for (int k = 0; k < count; ++k) {
    // A mirror image runs the other way round.
    const Vector corner = corners[x * y > 0.0f ? k : count - 1 - k];
    made.corners[k] = {x * corner.x, y * corner.y};
  }
  for (int k = 0; k < count; ++k) {
    const Vector edge = made.corners[(k + 1) % count] - made.corners[k];
    made.normals[k] = (1.0f / length(edge)) * Vector{edge.y, -edge.x};
  }
  return made;
}

template <int count>
Barrier barrier(const Vector (&corners)[count], float x, float y, bool is_goal) {
  const Polygon shape = polygon(corners, x * kPixel, y * kPixel);
  return {shape, Placed(shape, {0.0f, 1.0f}, {0.0f, 0.0f}), is_goal};
}

// In pixels from the centre, counter-clockwise.
constexpr Vector kTop[] = {{-250, 200}, {250, 200}, {250, 220}, {-250, 220}};
constexpr Vector kUpperRight[] = {{235, 82}, {255, 75}, {255, 215}, {235, 215}};
constexpr Vector kGoal[] = {{245, -75}, {265, -75}, {265, 75}, {245, 75}};
constexpr Vector kRacket[] = {{5, -20}, {5, 20},    {-10, 20}, {-18, 10},
                              {-21, 0}, {-18, -10}, {-10, -20}};

}  // namespace

Placed::Placed(const Polygon& shape, Rotation rotation, Vector origin) : count(shape.count) {
  box = {1e9f, -1e9f, 1e9f, -1e9f};
  for (int k = 0; k < kLanes; ++k) {
    const int corner_number = k < count ? k : 0;
    const Vector corner = rotated(rotation, shape.corners[corner_number]) + origin;
    const Vector normal = rotated(rotation, shape.normals[corner_number]);
    x[k] = corner.x;
    y[k] = corner.y;
    normal_x[k] = normal.x;
    normal_y[k] = normal.y;
    offset[k] = dot(normal, corner);
    box = around(box, {corner.x, corner.x, corner.y, corner.y});
  }
}

const Barrier kBarriers[kBarrierCount] = {
    barrier(kTop, 1, 1, false),          barrier(kTop, 1, -1, false),
    barrier(kUpperRight, 1, 1, false),   barrier(kUpperRight, -1, 1, false),
    barrier(kUpperRight, -1, -1, false), barrier(kUpperRight, 1, -1, false),
    barrier(kGoal, -1, 1, true),         barrier(kGoal, 1, 1, true),
};

const Polygon kRackets[2] = {polygon(kRacket, kRacketPixel, kRacketPixel),
                             polygon(kRacket, -kRacketPixel, kRacketPixel)};

}  // namespace shoal::hockey
