#include "contact.h"

namespace shoal::hockey {

namespace {

constexpr float kTiny = 1.1920929e-7f;

struct Face {
  int index;
  float separation;
};

SHOAL_INLINE Face largest_of(const Lanes& apart) {
  const float most = largest(apart);
  int k = 0;
  while (k < kLanes - 1 && apart[k] != most) ++k;
  return {k, most};
}

/// The distance of `b` in front of each face of `a`.
SHOAL_INLINE Lanes distances(const Placed& a, const Placed& b) {
  Lanes least = a.normal_x * b.x[0] + a.normal_y * b.y[0];
  for (int k = 1; k < b.count; ++k) {
    least = smaller(least, a.normal_x * b.x[k] + a.normal_y * b.y[k]);
  }
  return least - a.offset;
}

/// The face of `a` with the largest distance to `b`.
SHOAL_INLINE Face separating_face(const Placed& a, const Placed& b) {
  const Lanes apart = distances(a, b);
  return largest_of(apart);
}

/// Clips a segment at the line `along` * x = `most`. Returns the number of remaining ends.
int clip(Vector (&ends)[2], Vector along, float most) {
  const float first = dot(along, ends[0]) - most, second = dot(along, ends[1]) - most;
  if (first > 0.0f && second > 0.0f) return 0;
  if (first * second < 0.0f) {
    const Vector cut = ends[0] + (first / (first - second)) * (ends[1] - ends[0]);
    ends[first > 0.0f ? 0 : 1] = cut;
  }
  return 2;
}

Vector to_local(const Body& body, Vector point) {
  return rotated_back(body.rotation, point - body.centre) + body.offset;
}

}  // namespace

SHOAL_WIDE Contact touch_circle(Body& a, const Polygon& shape, Body& puck) {
  Contact contact;
  contact.count = 0;
  constexpr float kReach = kSkin + kPuckRadius;
  const Vector centre = to_local(a, puck.centre);
  const Lanes apart = shape.normal_x * (centre.x - shape.x) + shape.normal_y * (centre.y - shape.y);
  const Face face = largest_of(apart);
  if (face.separation > kReach) return contact;
  const Vector begin = shape.corner(face.index), end = shape.corner(shape.after(face.index));
  contact.normal = shape.normal(face.index);
  contact.plane = 0.5f * (begin + end);
  if (face.separation >= kTiny) {
    // Outside, the nearest point may be a corner.
    const bool before = dot(centre - begin, end - begin) <= 0.0f;
    const bool after = dot(centre - end, begin - end) <= 0.0f;
    if (before || after) {
      const Vector corner = before ? begin : end;
      const Vector away = centre - corner;
      const float distance = length(away);
      if (distance > kReach) return contact;
      if (distance > kTiny) contact.normal = (1.0f / distance) * away;
      contact.plane = corner;
    }
  }
  contact.a = &a;
  contact.b = &puck;
  contact.count = 1;
  contact.points[0] = {0.0f, 0.0f};
  contact.radius_a = kSkin;
  contact.radius_b = kPuckRadius;
  contact.radius = kReach;
  return contact;
}

SHOAL_WIDE float separation(const Placed& a, const Placed& b) {
  const Lanes of_both = larger(distances(a, b), distances(b, a));
  return largest(of_both);
}

SHOAL_WIDE Contact touch_polygons(Body& a, const Placed& shape_a, Body& b, const Placed& shape_b) {
  constexpr float kReach = 2.0f * kSkin;
  // Prefer the first polygon slightly, so that the choice does not alternate between steps.
  constexpr float kRelative = 0.98f, kAbsolute = 0.001f;
  Contact contact;
  contact.count = 0;
  const Face of_a = separating_face(shape_a, shape_b);
  if (of_a.separation > kReach) return contact;
  const Face of_b = separating_face(shape_b, shape_a);
  if (of_b.separation > kReach) return contact;
  const bool swapped = of_b.separation > kRelative * of_a.separation + kAbsolute;
  const Placed& front = swapped ? shape_b : shape_a;
  const Placed& back = swapped ? shape_a : shape_b;
  contact.a = swapped ? &b : &a;
  contact.b = swapped ? &a : &b;
  const int face = swapped ? of_b.index : of_a.index;
  const int after = front.after(face);
  const Vector normal = front.normal(face);

  // The edge of the other polygon that faces this face.
  int facing = 0;
  float least = 1e9f;
  for (int k = 0; k < back.count; ++k) {
    const float turned = dot(normal, back.normal(k));
    if (turned < least) {
      least = turned;
      facing = k;
    }
  }
  Vector ends[2] = {back.corner(facing), back.corner(back.after(facing))};
  const Vector along{-normal.y, normal.x};
  if (clip(ends, -along, -dot(along, front.corner(face)) + kReach) < 2) return contact;
  if (clip(ends, along, dot(along, front.corner(after)) + kReach) < 2) return contact;

  contact.normal = rotated_back(contact.a->rotation, normal);
  contact.plane = to_local(*contact.a, 0.5f * (front.corner(face) + front.corner(after)));
  for (const Vector end : ends) {
    if (dot(normal, end) - front.offset[face] > kReach) continue;
    contact.points[contact.count++] = to_local(*contact.b, end);
  }
  contact.radius_a = contact.radius_b = kSkin;
  contact.radius = kReach;
  return contact;
}

}  // namespace shoal::hockey
