// Detection of contacts between bodies.
#pragma once

#include "rink.h"

namespace shoal::hockey {

/// A rigid body. A static body has an inverse mass of zero.
struct Body {
  Vector centre;  // of mass
  float angle;
  Vector velocity;  // of the centre of mass
  float spin;
  float inverse_mass, inverse_inertia;
  Vector offset;      // from the origin of its shape to its centre of mass, unrotated
  Rotation rotation;  // that of `angle`
  bool is_round;      // a disc around its centre of mass, whose angle is irrelevant

  /// The position of its shape.
  Vector origin() const { return centre - rotated(rotation, offset); }
  Vector to_world(Vector point) const { return rotated(rotation, point - offset) + centre; }
  Vector velocity_at(Vector arm) const { return velocity + cross(spin, arm); }
  void turn_to(float to) {
    if (is_round || to == angle) return;
    angle = to;
    rotation = hockey::rotation(to);
  }
  /// Turns by a small angle without computing sine and cosine; for position corrections.
  void turn_by(float turn) {
    constexpr float kSmall = 2e-3f;  // its cube is below the precision of float32
    if (is_round) return;
    if (std::abs(turn) > kSmall) return turn_to(angle + turn);
    const float half_square = 0.5f * turn * turn;
    rotation = {rotation.sine + turn * rotation.cosine - half_square * rotation.sine,
                rotation.cosine - turn * rotation.sine - half_square * rotation.cosine};
    angle += turn;
  }
};

/// One or two points of body `b` that touch a face or a corner of body `a`. Given in coordinates of
/// the bodies, so that it stays valid while they move.
struct Contact {
  Body* a;
  Body* b;
  Vector normal, plane;  // the normal and a point of the face of `a`
  int count;
  Vector points[2];  // of `b`
  float radius;      // the sum of both skins
  float radius_a, radius_b;
  float friction, restitution;
};

/// The contact of the puck with a polygon. If `count` is 0, they do not touch, and the other
/// members are undefined.
Contact touch_circle(Body& a, const Polygon& shape, Body& puck);

/// The contact of two polygons, given at the poses of their bodies.
Contact touch_polygons(Body& a, const Placed& shape_a, Body& b, const Placed& shape_b);

/// The distance of two polygons along the best separating face; negative if they overlap.
float separation(const Placed& a, const Placed& b);

}  // namespace shoal::hockey
