#include "solver.h"

#include <algorithm>
#include <cmath>

namespace shoal::hockey {

namespace {

constexpr int kRounds = 180;
constexpr float kSlowest = 1.0f;   // bodies bounce above this speed, in metres per second
constexpr float kStill = 1e-6f;    // the relative change of an impulse that counts as converged
constexpr float kFarthest = 0.2f;  // the largest correction of a round

struct Point {
  Vector arm_a, arm_b;
  float normal_mass, tangent_mass;
  float bounce;  // the target separation speed
  float normal_impulse, tangent_impulse;
};

/// A contact with data that is constant during the iteration.
struct Constraint {
  Contact* contact;
  Vector normal, tangent;
  int count;
  Point points[2];
  bool is_block;
  // The response of both points' speeds to their impulses, as a matrix, and its inverse.
  float k11, k12, k22, inverse11, inverse12, inverse22;
};

float response(const Body& a, const Body& b, Vector arm_a, Vector arm_b, Vector along) {
  const float turn_a = cross(arm_a, along), turn_b = cross(arm_b, along);
  return a.inverse_mass + b.inverse_mass + a.inverse_inertia * turn_a * turn_a +
         b.inverse_inertia * turn_b * turn_b;
}

Vector relative_velocity(const Body& a, const Body& b, const Point& point) {
  return b.velocity_at(point.arm_b) - a.velocity_at(point.arm_a);
}

void push(Body& a, Body& b, const Point& point, Vector impulse) {
  a.velocity -= a.inverse_mass * impulse;
  a.spin -= a.inverse_inertia * cross(point.arm_a, impulse);
  b.velocity += b.inverse_mass * impulse;
  b.spin += b.inverse_inertia * cross(point.arm_b, impulse);
}

Constraint prepared(Contact& contact) {
  Constraint made{};
  const Body &a = *contact.a, &b = *contact.b;
  made.contact = &contact;
  made.normal = rotated(a.rotation, contact.normal);
  made.tangent = {made.normal.y, -made.normal.x};
  made.count = contact.count;
  const Vector plane = a.to_world(contact.plane);
  for (int k = 0; k < contact.count; ++k) {
    Point& point = made.points[k];
    const Vector clip = b.to_world(contact.points[k]);
    const float depth = dot(clip - plane, made.normal);
    // Apply impulses midway between both surfaces.
    const Vector where =
        clip + (0.5f * (contact.radius_a - depth - contact.radius_b)) * made.normal;
    point.arm_a = where - a.centre;
    point.arm_b = where - b.centre;
    point.normal_mass = 1.0f / response(a, b, point.arm_a, point.arm_b, made.normal);
    point.tangent_mass = 1.0f / response(a, b, point.arm_a, point.arm_b, made.tangent);
    const float approach = dot(made.normal, relative_velocity(a, b, point));
    point.bounce = approach < -kSlowest ? -contact.restitution * approach : 0.0f;
  }
  if (made.count < 2) return made;
  constexpr float kWorst = 1000.0f;  // condition number above which one point is enough
  const float a1 = cross(made.points[0].arm_a, made.normal);
  const float a2 = cross(made.points[1].arm_a, made.normal);
  const float b1 = cross(made.points[0].arm_b, made.normal);
  const float b2 = cross(made.points[1].arm_b, made.normal);
  const float mass = a.inverse_mass + b.inverse_mass;
  made.k11 = mass + a.inverse_inertia * a1 * a1 + b.inverse_inertia * b1 * b1;
  made.k22 = mass + a.inverse_inertia * a2 * a2 + b.inverse_inertia * b2 * b2;
  made.k12 = mass + a.inverse_inertia * a1 * a2 + b.inverse_inertia * b1 * b2;
  const float determinant = made.k11 * made.k22 - made.k12 * made.k12;
  if (made.k11 * made.k11 < kWorst * determinant) {
    made.is_block = true;
    made.inverse11 = made.k22 / determinant;
    made.inverse12 = -made.k12 / determinant;
    made.inverse22 = made.k11 / determinant;
  } else {
    made.count = 1;
  }
  return made;
}

/// The relative change of an impulse.
float relative_change(float from, float to) { return std::abs(to - from) / (1.0f + std::abs(to)); }

/// Updates friction at every point, limited by the normal impulse.
float update_friction(Constraint& c) {
  Body &a = *c.contact->a, &b = *c.contact->b;
  float change = 0.0f;
  for (int k = 0; k < c.count; ++k) {
    Point& point = c.points[k];
    const float speed = dot(relative_velocity(a, b, point), c.tangent);
    const float most = c.contact->friction * point.normal_impulse;
    const float before = point.tangent_impulse;
    const float after = std::clamp(before - point.tangent_mass * speed, -most, most);
    point.tangent_impulse = after;
    push(a, b, point, (after - before) * c.tangent);
    change = std::max(change, relative_change(before, after));
  }
  return change;
}

/// Updates the normal impulse of one point.
float update_normal(Constraint& c) {
  Body &a = *c.contact->a, &b = *c.contact->b;
  Point& point = c.points[0];
  const float speed = dot(relative_velocity(a, b, point), c.normal);
  const float before = point.normal_impulse;
  const float after = std::max(0.0f, before - point.normal_mass * (speed - point.bounce));
  point.normal_impulse = after;
  push(a, b, point, (after - before) * c.normal);
  return relative_change(before, after);
}

/// Updates both normal impulses at once: of the four combinations of active points, selects the one
/// in which no impulse is negative.
float update_normals(Constraint& c) {
  Body &a = *c.contact->a, &b = *c.contact->b;
  Point &first = c.points[0], &second = c.points[1];
  const float old1 = first.normal_impulse, old2 = second.normal_impulse;
  const float speed1 = dot(relative_velocity(a, b, first), c.normal);
  const float speed2 = dot(relative_velocity(a, b, second), c.normal);
  // The speeds without any impulse.
  const float free1 = speed1 - first.bounce - (c.k11 * old1 + c.k12 * old2);
  const float free2 = speed2 - second.bounce - (c.k12 * old1 + c.k22 * old2);
  float new1 = -(c.inverse11 * free1 + c.inverse12 * free2);
  float new2 = -(c.inverse12 * free1 + c.inverse22 * free2);
  if (new1 < 0.0f || new2 < 0.0f) {
    new1 = -first.normal_mass * free1;
    new2 = 0.0f;
    if (new1 < 0.0f || c.k12 * new1 + free2 < 0.0f) {
      new1 = 0.0f;
      new2 = -second.normal_mass * free2;
      if (new2 < 0.0f || c.k12 * new2 + free1 < 0.0f) {
        new1 = new2 = 0.0f;
        if (free1 < 0.0f || free2 < 0.0f) return 0.0f;  // only rounding errors: change nothing
      }
    }
  }
  push(a, b, first, (new1 - old1) * c.normal);
  push(a, b, second, (new2 - old2) * c.normal);
  first.normal_impulse = new1;
  second.normal_impulse = new2;
  return std::max(relative_change(old1, new1), relative_change(old2, new2));
}

/// Iterates over all contacts until the impulses converge.
void iterate(Constraint* constraints, int count) {
  for (int round = 0; round < kRounds; ++round) {
    float change = 0.0f;
    for (int k = 0; k < count; ++k) {
      Constraint& c = constraints[k];
      change = std::max(change, update_friction(c));
      change = std::max(change, c.is_block ? update_normals(c) : update_normal(c));
    }
    if (change <= kStill) return;
  }
}

/// The velocities of the bodies of contacts.
class Velocities {
 public:
  explicit Velocities(const Contacts& contacts) {
    for (int k = 0; k < contacts.count; ++k) {
      add(contacts.items[k].a);
      add(contacts.items[k].b);
    }
  }
  double energy() const {
    double sum = 0.0;
    for (int k = 0; k < count_; ++k) {
      const Body& body = *bodies_[k];
      sum += 0.5 * dot(velocities_[k], velocities_[k]) / body.inverse_mass +
             0.5 * spins_[k] * spins_[k] / body.inverse_inertia;
    }
    return sum;
  }
  void restore() const {
    for (int k = 0; k < count_; ++k) {
      bodies_[k]->velocity = velocities_[k];
      bodies_[k]->spin = spins_[k];
    }
  }

 private:
  static constexpr int kMax = 3;

  void add(Body* body) {
    if (body->inverse_mass == 0.0f) return;
    if (std::find(bodies_, bodies_ + count_, body) != bodies_ + count_) return;
    bodies_[count_] = body;
    velocities_[count_] = body->velocity;
    spins_[count_++] = body->spin;
  }

  int count_ = 0;
  Body* bodies_[kMax];
  Vector velocities_[kMax];
  float spins_[kMax];
};

/// Solves a single contact point in closed form: it sticks, slides or separates.
void solve_single_point(Constraint& c) {
  Body &a = *c.contact->a, &b = *c.contact->b;
  Point& point = c.points[0];
  const Vector velocity = relative_velocity(a, b, point);
  const float normal_speed = dot(velocity, c.normal) - point.bounce;
  if (normal_speed >= 0.0f) return;
  const float tangent_speed = dot(velocity, c.tangent);
  const float turn_a = cross(point.arm_a, c.normal) * cross(point.arm_a, c.tangent);
  const float turn_b = cross(point.arm_b, c.normal) * cross(point.arm_b, c.tangent);
  // The response of each speed to the impulse in its direction and in the other direction.
  const float nn = 1.0f / point.normal_mass, tt = 1.0f / point.tangent_mass;
  const float nt = a.inverse_inertia * turn_a + b.inverse_inertia * turn_b;
  const float determinant = nn * tt - nt * nt;
  float press = (nt * tangent_speed - tt * normal_speed) / determinant;
  float hold = (nt * normal_speed - nn * tangent_speed) / determinant;
  const float friction = c.contact->friction;
  if (std::abs(hold) > friction * press) {
    const float grip = std::copysign(friction, hold);
    press = -normal_speed / (nn + grip * nt);
    hold = grip * press;
  }
  push(a, b, point, press * c.normal + hold * c.tangent);
}

/// Corrects one point once; returns the distance of the surfaces before the correction.
SHOAL_INLINE float correct(Body& a, Body& b, const Contact& contact, int k,
                           const Correction& correction) {
  const Vector normal = rotated(a.rotation, contact.normal);
  const Vector point = b.is_round ? b.centre : b.to_world(contact.points[k]);
  const float apart = dot(point - a.to_world(contact.plane), normal) - contact.radius;
  const float wanted = std::clamp(correction.share * (apart + kSlop), -kFarthest, 0.0f);
  if (wanted == 0.0f) return apart;
  const Vector arm_a = point - a.centre, arm_b = point - b.centre;
  const Vector impulse = (-wanted / response(a, b, arm_a, arm_b, normal)) * normal;
  a.centre -= a.inverse_mass * impulse;
  a.turn_by(-a.inverse_inertia * cross(arm_a, impulse));
  b.centre += b.inverse_mass * impulse;
  b.turn_by(b.inverse_inertia * cross(arm_b, impulse));
  return apart;
}

/// Corrects a single contact of a puck. A held puck is deep inside its racket and needs many
/// rounds, so they are computed in the frame of the racket, where little changes, and applied at
/// the end.
void correct_puck(const Contact& contact, const Correction& correction) {
  Body &a = *contact.a, &puck = *contact.b;
  const Vector normal = contact.normal;
  Vector place = rotated_back(a.rotation, puck.centre - a.centre);
  const float surface = dot(contact.plane - a.offset, normal) + contact.radius;
  // Hardly changes while the puck moves along the normal.
  float arm = cross(place, normal);
  const float mass = a.inverse_mass + puck.inverse_mass;
  const float share = 1.0f / (mass + a.inverse_inertia * arm * arm);
  float impulse = 0.0f, turned = 0.0f, sideways = 0.0f;
  for (int round = 0; round < correction.rounds; ++round) {
    const float apart = dot(place, normal) - surface;
    const float wanted = larger(correction.share * (apart + kSlop), -kFarthest);
    if (wanted < 0.0f) {
      const float given = -wanted * share, turn = a.inverse_inertia * arm * given;
      impulse += given;
      sideways += given * turned;
      turned -= turn;
      place += mass * given * normal;
      place += cross(turn, place);
      arm = cross(place, normal);
    }
    if (apart >= -correction.tolerated) break;
  }
  const Vector pushed = impulse * normal + cross(sideways, normal);
  a.centre -= a.inverse_mass * rotated(a.rotation, pushed);
  a.turn_by(turned);
  puck.centre = a.centre + rotated(a.rotation, place);
}

}  // namespace

void solve_velocities(Contacts& contacts) {
  Constraint constraints[kMaxContacts];
  bool any_bounces = false;
  for (int k = 0; k < contacts.count; ++k) {
    constraints[k] = prepared(contacts.items[k]);
    any_bounces |= constraints[k].points[0].bounce > 0.0f;
  }
  if (contacts.count == 1 && constraints[0].count == 1) return solve_single_point(constraints[0]);
  if (!any_bounces) return iterate(constraints, contacts.count);
  const Velocities before(contacts);
  iterate(constraints, contacts.count);
  if (Velocities(contacts).energy() <= before.energy()) return;
  // A puck between two bodies cannot bounce off both: that would create energy.
  before.restore();
  for (int k = 0; k < contacts.count; ++k) {
    constraints[k] = prepared(contacts.items[k]);
    constraints[k].points[0].bounce = 0.0f;
  }
  iterate(constraints, contacts.count);
}

void solve_positions(Contacts& contacts, const Correction& correction) {
  if (contacts.count == 1 && contacts.items[0].b->is_round) {
    return correct_puck(contacts.items[0], correction);
  }
  for (int round = 0; round < correction.rounds; ++round) {
    float nearest = 0.0f;
    for (int k = 0; k < contacts.count; ++k) {
      Contact& contact = contacts.items[k];
      for (int p = 0; p < contact.count; ++p) {
        nearest = std::min(nearest, correct(*contact.a, *contact.b, contact, p, correction));
      }
    }
    if (nearest >= -correction.tolerated) return;
  }
}

void move(Body& body, float seconds) {
  const Vector way = seconds * body.velocity;
  if (dot(way, way) > kMaxTravel * kMaxTravel) {
    body.velocity = (kMaxTravel / length(way)) * body.velocity;
  }
  const float turn = std::abs(seconds * body.spin);
  if (turn > kMaxTurn) body.spin *= kMaxTurn / turn;
  body.centre += seconds * body.velocity;
  body.turn_to(body.angle + seconds * body.spin);
}

}  // namespace shoal::hockey
