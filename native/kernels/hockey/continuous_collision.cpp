#include "continuous_collision.h"

#include <algorithm>
#include <cmath>

namespace shoal::hockey {

namespace {

// A body is stopped where its skin overlaps by as much as resolved contacts do, within kTolerance.
constexpr float kOverlap = 3.0f * kSlop, kTolerance = 0.25f * kSlop;
constexpr float kPuckStop = kPuckRadius + kSkin - kOverlap;
constexpr float kRacketStop = 2.0f * kSkin - kOverlap;
constexpr int kMaxImpacts = 8;  // with one barrier, per step
constexpr float kStepEnd = 1.0f - 1.2e-6f;

/// The distance of a point to a polygon; 0 inside.
float distance_to(const Polygon& shape, Vector point) {
  int face = 0;
  float most = -1e9f;
  for (int k = 0; k < shape.count; ++k) {
    const float apart = dot(shape.normal(k), point - shape.corner(k));
    if (apart > most) {
      most = apart;
      face = k;
    }
  }
  if (most <= 0.0f) return 0.0f;
  const Vector begin = shape.corner(face), end = shape.corner(shape.after(face));
  if (dot(point - begin, end - begin) <= 0.0f) return length(point - begin);
  if (dot(point - end, begin - end) <= 0.0f) return length(point - end);
  return most;
}

/// The fraction of a path after which a point comes within `radius` of a polygon; 2 if it does not.
float first_within(const Polygon& shape, float radius, Vector from, Vector path) {
  float earliest = 2.0f;
  for (int k = 0; k < shape.count; ++k) {
    const Vector begin = shape.corner(k), end = shape.corner(shape.after(k)),
                 normal = shape.normal(k);
    const float speed = dot(normal, path);
    if (speed < 0.0f) {
      const float fraction = (radius - dot(normal, from - begin)) / speed;
      const Vector at = from + fraction * path;
      const bool on_edge =
          dot(at - begin, end - begin) >= 0.0f && dot(at - end, begin - end) >= 0.0f;
      if (fraction >= 0.0f && fraction <= 1.0f && on_edge) earliest = std::min(earliest, fraction);
    }
    // The circle around the corner.
    const Vector apart = from - begin;
    const float a = dot(path, path), b = dot(apart, path), c = dot(apart, apart) - radius * radius;
    const float root = b * b - a * c;
    if (b < 0.0f && c >= 0.0f && root >= 0.0f) {
      const float fraction = (-b - std::sqrt(root)) / a;
      if (fraction <= 1.0f) earliest = std::min(earliest, fraction);
    }
  }
  return earliest;
}

/// The first impact on a path.
struct Impact {
  int barrier = -1;
  float fraction = 1.0f;  // of the remaining path
};

float puck_impact(const Polygon& shape, Vector from, Vector path) {
  const float apart = distance_to(shape, from);
  if (apart <= 0.0f) return 2.0f;
  if (apart < kPuckStop + kTolerance) return 0.0f;
  // Leave a grazing contact to the next step.
  if (first_within(shape, kPuckStop - kTolerance, from, path) > 1.0f) return 2.0f;
  return first_within(shape, kPuckStop, from, path);
}

/// The path of a body in the rest of a step.
struct Path {
  Vector from, to;
  float from_angle, to_angle;

  void place(Body& body, float fraction) const {
    body.centre = from + fraction * (to - from);
    body.turn_to(from_angle + fraction * (to_angle - from_angle));
  }
};

/// The fraction of a path after which a racket hits a barrier; 2 if it does not.
template <class Place>
float racket_impact(const Placed& barrier, const Placed& begin, const Placed& end,
                    const Place& place) {
  const float at_begin = separation(barrier, begin);
  if (at_begin <= 0.0f) return 2.0f;
  if (at_begin < kRacketStop + kTolerance) return 0.0f;
  const float at_end = separation(barrier, end);
  if (at_end > kRacketStop - kTolerance) return 2.0f;
  float left = 0.0f, right = 1.0f, of_left = at_begin, of_right = at_end;
  for (int round = 0; round < 50; ++round) {
    const float fraction =
        round % 2 == 0 ? 0.5f * (left + right)
                       : left + (kRacketStop - of_left) * (right - left) / (of_right - of_left);
    const float distance = separation(barrier, place(fraction));
    if (std::abs(distance - kRacketStop) < kTolerance) return fraction;
    if (distance > kRacketStop) {
      left = fraction;
      of_left = distance;
    } else {
      right = fraction;
      of_right = distance;
    }
  }
  return left;
}

/// Moves a body along its path, with impacts. `find_impact` returns the first impact on a path;
/// `touch` collects the contacts at the current pose and returns whether the barrier is touched.
template <class FindImpact, class Touch>
void sweep(Body& body, Path path, const FindImpact& find_impact, const Touch& touch) {
  int impacts[kBarrierCount] = {};
  float done = 0.0f;  // the completed fraction of the step
  for (;;) {
    const Impact first = find_impact(path, impacts);
    const float when = done + (1.0f - done) * first.fraction;
    if (first.barrier < 0 || when > kStepEnd) return;
    path.place(body, first.fraction);
    Contacts contacts;
    if (!touch(first.barrier, contacts)) {
      impacts[first.barrier] = kMaxImpacts + 1;  // close, but without contact: ignore it
      path.place(body, 1.0f);
      continue;
    }
    ++impacts[first.barrier];
    solve_positions(contacts, kAtImpact);
    path.from = body.centre;
    path.from_angle = body.angle;
    solve_velocities(contacts);
    done = when;
    move(body, (1.0f - done) * kStep);
    path.to = body.centre;
    path.to_angle = body.angle;
  }
}

Box box_of_puck(Vector centre) {
  return Box{centre.x, centre.x, centre.y, centre.y}.grown(kPuckRadius + kSkin);
}

}  // namespace

void sweep_puck(Body& puck, Body& ground, Vector from) {
  const float friction = std::sqrt(kWallFriction * kPuckFriction);
  auto find_impact = [&](const Path& path, const int (&impacts)[kBarrierCount]) {
    const Box box = around(box_of_puck(path.from), box_of_puck(path.to));
    Impact first;
    for (int k = 0; k < kFirstGoal; ++k) {
      if (impacts[k] > kMaxImpacts || !box.meets(kBarriers[k].shape.box)) continue;
      const float fraction = puck_impact(kBarriers[k].shape, path.from, path.to - path.from);
      if (fraction < first.fraction) first = {k, fraction};
    }
    return first;
  };
  auto touch = [&](int struck, Contacts& contacts) {
    const Box box = box_of_puck(puck.centre);
    bool is_struck = false;
    for (int k = 0; k < kFirstGoal; ++k) {
      if (!box.meets(kBarriers[k].shape.box)) continue;
      const Contact contact = touch_circle(ground, kBarriers[k].shape, puck);
      contacts.add(contact, friction, kPuckRestitution);
      is_struck |= k == struck && contact.count > 0;
    }
    return is_struck;
  };
  sweep(puck, {from, puck.centre, puck.angle, puck.angle}, find_impact, touch);
}

void sweep_racket(Body& racket, const Polygon& shape, Body& ground, Vector from, float from_angle) {
  const float friction = std::sqrt(kWallFriction * kRacketFriction);
  auto find_impact = [&](const Path& path, const int (&impacts)[kBarrierCount]) {
    Body moved = racket;
    auto place = [&](float fraction) {
      path.place(moved, fraction);
      return placed(shape, moved.rotation, moved.origin());
    };
    const Placed begin = place(0.0f), end = place(1.0f);
    const Box box = around(begin.box, end.box).grown(kRacketStop + kTolerance);
    Impact first;
    for (int k = 0; k < kBarrierCount; ++k) {
      if (impacts[k] > kMaxImpacts || !box.meets(kBarriers[k].shape.box)) continue;
      const float fraction = racket_impact(kBarriers[k].shape, begin, end, place);
      if (fraction < first.fraction) first = {k, fraction};
    }
    return first;
  };
  auto touch = [&](int struck, Contacts& contacts) {
    const Placed here = placed(shape, racket.rotation, racket.origin());
    const Box box = here.box.grown(2.0f * kSkin);
    bool is_struck = false;
    for (int k = 0; k < kBarrierCount; ++k) {
      if (!box.meets(kBarriers[k].shape.box)) continue;
      const Contact contact = touch_polygons(ground, kBarriers[k].shape, racket, here);
      contacts.add(contact, friction, 0.0f);
      is_struck |= k == struck && contact.count > 0;
    }
    return is_struck;
  };
  sweep(racket, {from, racket.centre, from_angle, racket.angle}, find_impact, touch);
}

}  // namespace shoal::hockey
