// The rink and what moves on it: shapes, masses and materials. Metres, the origin in the centre.
//
// The rink is symmetric under a half turn about the origin, and so are the rackets: what player 2
// does is what player 1 does, turned.
#pragma once

#include "vector2.h"

namespace shoal::hockey {

constexpr float kStep = 0.02f;  // seconds
constexpr float kPi = 3.14159265358979f;
constexpr float kMostTravel = 2.0f, kMostTurn = 0.5f * kPi;  // of any body in a step

/// A convex polygon, counter-clockwise, its corners side by side; those that it lacks repeat the
/// first one.
struct Polygon {
  Lanes x, y;                // corners
  Lanes normal_x, normal_y;  // of the edges that begin there
  int count;

  Vector corner(int k) const { return {x[k], y[k]}; }
  Vector normal(int k) const { return {normal_x[k], normal_y[k]}; }
  int after(int k) const { return k + 1 < count ? k + 1 : 0; }
};

/// An upright rectangle.
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

/// A polygon where it is.
struct Placed : Polygon {
  Lanes offset;  // of the edges from the origin, along their normals
  Box box;
};

Placed placed(const Polygon& shape, Rotation rotation, Vector origin);

/// Something that does not move.
struct Barrier {
  Placed shape;
  bool is_goal;  // solid for rackets; a puck passes, and has scored
};

constexpr int kBarrierCount = 8;
extern const Barrier kBarriers[kBarrierCount];
constexpr int kFirstGoal = 6;  // the last two are the goals of player 1 and player 2

extern const Polygon kRackets[2];  // of player 1 and player 2, about their origins

constexpr float kRacketMass = 58.0f, kRacketInertia = 3.709495f;
constexpr float kRacketCentre = 0.1223755f;  // of mass, behind the origin
constexpr float kRacketReach = 0.44722f;     // from the origin to the farthest corner
constexpr float kPuckRadius = 13.0f / 60, kPuckMass = 1.0323623f, kPuckInertia = 0.02423184f;

constexpr float kWallFriction = 0.1f, kRacketFriction = 1.0f, kPuckFriction = 0.1f;
constexpr float kPuckRestitution = 0.95f;  // nothing else bounces

constexpr float kSkin = 0.01f;  // around polygons

/// Where the inner faces of the walls are.
constexpr float kHalfWidth = 235.0f / 60, kHalfHeight = 200.0f / 60;
/// The world, which nothing ever leaves.
constexpr float kWorldHalfWidth = 5.0f, kWorldHalfHeight = 4.0f;
/// Where the origin of a racket can be at most: that far back it may begin in a training mode, and
/// that far up its flat front would lie on a wall.
constexpr float kRacketFarthestX = 14.0f / 3, kRacketFarthestY = kHalfHeight - 0.1f;
constexpr float kGoalBack = 265.0f / 60, kGoalFront = 245.0f / 60;
constexpr float kGoalHalfMouth = 75.0f / 60;

}  // namespace shoal::hockey
