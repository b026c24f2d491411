#include "continuous_collision.h"

#include <algorithm>
#include <cmath>

namespace shoal::hockey {

namespace {

// A body is stopped where the overlap of the skins is what contacts leave, give or take a little.
constexpr float kOverlap = 3.0f * kSlop, kTolerance = 0.25f * kSlop;
constexpr float kPuckStop = kPuckRadius + kSkin - kOverlap;
constexpr float kRacketStop = 2.0f * kSkin - kOverlap;
constexpr int kMostImpacts = 8;  // with one barrier
constexpr float kAll = 1.0f - 1.2e-6f;

/// The distance of a point to a polygon, 0 inside.
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

/// The share of the way after which a point comes within `radius` of a polygon; 2 if it does not.
float first_within(const Polygon& shape, float radius, Vector from, Vector way) {
  float earliest = 2.0f;
  for (int k = 0; k < shape.count; ++k) {
    const Vector begin = shape.corner(k), end = shape.corner(shape.after(k)),
                 normal = shape.normal(k);
    const float speed = dot(normal, way);
    if (speed < 0.0f) {
      const float share = (radius - dot(normal, from - begin)) / speed;
      const Vector at = from + share * way;
      const bool on_edge =
          dot(at - begin, end - begin) >= 0.0f && dot(at - end, begin - end) >= 0.0f;
      if (share >= 0.0f && share <= 1.0f && on_edge) earliest = std::min(earliest, share);
    }
    // The circle around the corner.
    const Vector apart = from - begin;
    const float a = dot(way, way), b = dot(apart, way), c = dot(apart, apart) - radius * radius;
    const float root = b * b - a * c;
    if (b < 0.0f && c >= 0.0f && root >= 0.0f) {
      const float share = (-b - std::sqrt(root)) / a;
      if (share <= 1.0f) earliest = std::min(earliest, share);
    }
  }
  return earliest;
}

/// Where an impact is.
struct Impact {
  int barrier = -1;
  float share = 1.0f;  // of the way that is left
};

float puck_impact(const Polygon& shape, Vector from, Vector way) {
  const float apart = distance_to(shape, from);
  if (apart <= 0.0f) return 2.0f;
  if (apart < kPuckStop + kTolerance) return 0.0f;
  // What is only grazed is left to the next step.
  if (first_within(shape, kPuckStop - kTolerance, from, way) > 1.0f) return 2.0f;
  return first_within(shape, kPuckStop, from, way);
}

/// The way of a body through what is left of a step.
struct Way {
  Vector from, to;
  float from_angle, to_angle;

  void place(Body& body, float share) const {
    body.centre = from + share * (to - from);
    body.turn_to(from_angle + share * (to_angle - from_angle));
  }
};

/// The share of the way after which a racket runs into a barrier; 2 if it does not.
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
    const float share =
        round % 2 == 0 ? 0.5f * (left + right)
                       : left + (kRacketStop - of_left) * (right - left) / (of_right - of_left);
    const float found = separation(barrier, place(share));
    if (std::abs(found - kRacketStop) < kTolerance) return share;
    if (found > kRacketStop) {
      left = share;
      of_left = found;
    } else {
      right = share;
      of_right = found;
    }
  }
  return left;
}

/// Both bodies are swept alike; they differ in how the first impact is found and what they touch.
template <class FindImpact, class Touch>
void sweep(Body& body, Way way, const FindImpact& find_impact, const Touch& touch) {
  int impacts[kBarrierCount] = {};
  float done = 0.0f;  // of the step
  for (;;) {
    const Impact first = find_impact(way, impacts);
    const float when = done + (1.0f - done) * first.share;
    if (first.barrier < 0 || when > kAll) return;
    way.place(body, first.share);
    Contacts contacts;
    if (!touch(first.barrier, contacts)) {
      impacts[first.barrier] = kMostImpacts + 1;  // it only came close
      way.place(body, 1.0f);
      continue;
    }
    ++impacts[first.barrier];
    solve_positions(contacts, kAtImpact);
    way.from = body.centre;
    way.from_angle = body.angle;
    solve_velocities(contacts);
    done = when;
    move(body, (1.0f - done) * kStep);
    way.to = body.centre;
    way.to_angle = body.angle;
  }
}

Box box_of_puck(Vector centre) {
  return Box{centre.x, centre.x, centre.y, centre.y}.grown(kPuckRadius + kSkin);
}

}  // namespace

void sweep_puck(Body& puck, Body& ground, Vector from) {
  const float friction = std::sqrt(kWallFriction * kPuckFriction);
  auto find_impact = [&](const Way& way, const int (&impacts)[kBarrierCount]) {
    const Box box = around(box_of_puck(way.from), box_of_puck(way.to));
    Impact first;
    for (int k = 0; k < kFirstGoal; ++k) {
      if (impacts[k] > kMostImpacts || !box.meets(kBarriers[k].shape.box)) continue;
      const float share = puck_impact(kBarriers[k].shape, way.from, way.to - way.from);
      if (share < first.share) first = {k, share};
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
  auto find_impact = [&](const Way& way, const int (&impacts)[kBarrierCount]) {
    Body moved = racket;
    auto place = [&](float share) {
      way.place(moved, share);
      return placed(shape, moved.rotation, moved.origin());
    };
    const Placed begin = place(0.0f), end = place(1.0f);
    const Box box = around(begin.box, end.box).grown(kRacketStop + kTolerance);
    Impact first;
    for (int k = 0; k < kBarrierCount; ++k) {
      if (impacts[k] > kMostImpacts || !box.meets(kBarriers[k].shape.box)) continue;
      const float share = racket_impact(kBarriers[k].shape, begin, end, place);
      if (share < first.share) first = {k, share};
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
