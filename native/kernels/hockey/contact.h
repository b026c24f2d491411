// Where two bodies touch.
#pragma once

#include "rink.h"

namespace shoal::hockey {

/// Something that moves, or, with no inverse mass, does not.
struct Body {
  Vector centre;  // of mass
  float angle;
  Vector velocity;  // of the centre of mass
  float spin;
  float inverse_mass, inverse_inertia;
  Vector offset;      // from the origin of its shape to its centre of mass, unrotated
  Rotation rotation;  // that of `angle`
  bool is_round;      // and centred: nobody sees its angle

  /// Where its shape is.
  Vector origin() const { return centre - rotated(rotation, offset); }
  Vector to_world(Vector point) const { return rotated(rotation, point - offset) + centre; }
  Vector velocity_at(Vector arm) const { return velocity + cross(spin, arm); }
  void turn_to(float to) {
    if (is_round || to == angle) return;
    angle = to;
    rotation = hockey::rotation(to);
  }
  /// For corrections, which are many and small.
  void turn_by(float turn) {
    constexpr float kSmall = 2e-3f;  // the cube of which is no number beside 1
    if (is_round) return;
    if (std::abs(turn) > kSmall) return turn_to(angle + turn);
    const float half_square = 0.5f * turn * turn;
    rotation = {rotation.sine + turn * rotation.cosine - half_square * rotation.sine,
                rotation.cosine - turn * rotation.sine - half_square * rotation.cosine};
    angle += turn;
  }
};

/// One or two points in which body `b` touches a face, or a corner, of body `a`. In coordinates of
/// the bodies, so that it stays true while they are moved.
struct Contact {
  Body* a;
  Body* b;
  Vector normal, plane;  // a direction and a point of the face of `a`
  int count;
  Vector points[2];  // of `b`
  float radius;      // of both skins together
  float radius_a, radius_b;
  float friction, restitution;
};

/// The contact of the puck with a polygon; its `count` is 0 where there is none, and the rest of it
/// then means nothing.
Contact touch_circle(Body& a, const Polygon& shape, Body& puck);

/// The same for two polygons, which are where their bodies are.
Contact touch_polygons(Body& a, const Placed& shape_a, Body& b, const Placed& shape_b);

/// How far apart two polygons are along the face that parts them best; negative if they overlap.
float separation(const Placed& a, const Placed& b);

}  // namespace shoal::hockey
