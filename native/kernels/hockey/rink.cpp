#include "rink.h"

namespace shoal::hockey {

namespace {

constexpr float kPixel = 1.0f / 60, kRacketPixel = 1.2f / 60;

/// Creates a polygon from corners in pixels, scaled by `x` and `y`, which may be negative.
template <int count>
Polygon polygon(const Vector (&corners)[count], float x, float y) {
  static_assert(count <= kLanes);
  Polygon made{};
  made.count = count;
  for (int k = 0; k < kLanes; ++k) {
    // A mirrored polygon has the opposite orientation.
    const int place = k < count ? k : 0, step = x * y > 0.0f ? 1 : count - 1;
    const Vector corner = corners[place * step % count];
    const Vector next = corners[(place + 1) * step % count];
    const Vector edge{x * (next.x - corner.x), y * (next.y - corner.y)};
    made.x[k] = x * corner.x;
    made.y[k] = y * corner.y;
    made.normal_x[k] = edge.y / length(edge);
    made.normal_y[k] = -edge.x / length(edge);
  }
  return made;
}

template <int count>
Barrier barrier(const Vector (&corners)[count], float x, float y, bool is_goal) {
  const Polygon shape = polygon(corners, x * kPixel, y * kPixel);
  return {placed(shape, {0.0f, 1.0f}, {0.0f, 0.0f}), is_goal};
}

// Corners in pixels from the centre, counter-clockwise.
constexpr Vector kTop[] = {{-250, 200}, {250, 200}, {250, 220}, {-250, 220}};
constexpr Vector kUpperRight[] = {{235, 82}, {255, 75}, {255, 215}, {235, 215}};
constexpr Vector kGoal[] = {{245, -75}, {265, -75}, {265, 75}, {245, 75}};
constexpr Vector kRacket[] = {{5, -20}, {5, 20},    {-10, 20}, {-18, 10},
                              {-21, 0}, {-18, -10}, {-10, -20}};

}  // namespace

SHOAL_WIDE Placed placed(const Polygon& shape, Rotation rotation, Vector origin) {
  const float sine = rotation.sine, cosine = rotation.cosine;
  Placed made;
  made.count = shape.count;
  made.x = cosine * shape.x - sine * shape.y + origin.x;
  made.y = sine * shape.x + cosine * shape.y + origin.y;
  made.normal_x = cosine * shape.normal_x - sine * shape.normal_y;
  made.normal_y = sine * shape.normal_x + cosine * shape.normal_y;
  made.offset = made.normal_x * made.x + made.normal_y * made.y;
  made.box = {smallest(made.x), largest(made.x), smallest(made.y), largest(made.y)};
  return made;
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
