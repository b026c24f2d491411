// The rink, rackets and puck: shapes, masses and materials. Units are metres; the origin is the
// centre of the rink.
//
// Everything is symmetric under a rotation by 180 degrees about the origin, so player 2 behaves
// exactly as player 1 does in the rotated rink.
#pragma once

#include "vector2.h"

namespace shoal::hockey {

constexpr float kStep = 0.02f;  // seconds
constexpr float kPi = 3.14159265358979f;
constexpr float kMaxTravel = 2.0f, kMaxTurn = 0.5f * kPi;  // limits for all bodies in one step

/// A convex polygon with counter-clockwise corners in lanes. Unused lanes repeat the first corner.
struct Polygon {
  Lanes x, y;                // corners
  Lanes normal_x, normal_y;  // of the edges that start at the corners
  int count;

  Vector corner(int k) const { return {x[k], y[k]}; }
  Vector normal(int k) const { return {normal_x[k], normal_y[k]}; }
  int after(int k) const { return k + 1 < count ? k + 1 : 0; }
};

/// An axis-aligned rectangle.
struct Box {
  float left, right, bottom, top;

  Box grown(float margin) const {
    return {left - margin, right + margin, bottom - margin, top + margin};
  }
  bool meets(const Box& other) const {
    return left <= other.right && other.left <= right && bottom <= other.top && other.bottom <= top;
  }
};

inline Box around(const Box& a, const Box& b) {
  return {smaller(a.left, b.left), larger(a.right, b.right), smaller(a.bottom, b.bottom),
          larger(a.top, b.top)};
}

/// A polygon in world coordinates.
struct Placed : Polygon {
  Lanes offset;  // the distance of each edge's line from the origin, along its normal
  Box box;
};

Placed placed(const Polygon& shape, Rotation rotation, Vector origin);

/// A static obstacle.
struct Barrier {
  Placed shape;
  bool is_goal;  // solid for rackets only; a puck inside has scored
};

constexpr int kBarrierCount = 8;
extern const Barrier kBarriers[kBarrierCount];
constexpr int kFirstGoal = 6;  // followed by the goal of player 2

extern const Polygon kRackets[2];  // of players 1 and 2, relative to their origins

constexpr float kRacketMass = 58.0f, kRacketInertia = 3.709495f;
constexpr float kRacketCentre = 0.1223755f;  // the centre of mass, behind the origin
constexpr float kRacketReach = 0.44722f;     // from the origin to the farthest corner
constexpr float kPuckRadius = 13.0f / 60, kPuckMass = 1.0323623f, kPuckInertia = 0.02423184f;

constexpr float kWallFriction = 0.1f, kRacketFriction = 1.0f, kPuckFriction = 0.1f;
constexpr float kPuckRestitution = 0.95f;  // other bodies do not bounce

constexpr float kSkin = 0.01f;  // the margin around polygons within which bodies touch

/// The positions of the inner faces of the walls.
constexpr float kHalfWidth = 235.0f / 60, kHalfHeight = 200.0f / 60;
/// The bounds of all bodies.
constexpr float kWorldHalfWidth = 5.0f, kWorldHalfHeight = 4.0f;
/// The bounds of a racket's origin: the rearmost start position of the training modes, and the
/// position in which its flat front lies on a wall.
constexpr float kRacketFarthestX = 14.0f / 3, kRacketFarthestY = kHalfHeight - 0.1f;
constexpr float kGoalBack = 265.0f / 60, kGoalFront = 245.0f / 60;
constexpr float kGoalHalfMouth = 75.0f / 60;

}  // namespace shoal::hockey
