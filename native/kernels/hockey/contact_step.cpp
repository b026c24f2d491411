#include "contact_step.h"

#include <algorithm>
#include <cmath>

#include "continuous_collision.h"
#include "solver.h"

namespace shoal::hockey {

namespace {

constexpr int kPuck = 2, kGround = 3;

constexpr Body kNothing = {{0.0f, 0.0f}, 0.0f,         {0.0f, 0.0f}, 0.0f, 0.0f,
                           0.0f,         {0.0f, 0.0f}, {0.0f, 1.0f}, false};

/// The bodies of a match and their contacts.
class Scene {
 public:
  Scene(const StepStart& start, float puck_spin);

  const Body& racket(int k) const { return bodies_[k]; }
  const Body& puck() const { return bodies_[kPuck]; }
  /// Whether this scene moves a body.
  bool is_moved(int k) const {
    return start_.near & (k == kPuck ? kNearOfPuck : near_of_racket(k));
  }

  /// Finds all contacts. Returns a bit for each racket that touches the puck.
  int touch();
  /// Whether the puck is in the goal of player `k`.
  bool is_goal(int k);
  void solve_and_move();
  /// Collides bodies with walls that they have passed through.
  void sweep();

 private:
  /// Merges the groups of two bodies; returns the group's contacts.
  Contacts& merged_group(int k, int other);
  Placed place(int k) const {
    return placed(kRackets[k], bodies_[k].rotation, bodies_[k].origin());
  }
  void touch_barriers(int racket, const Placed& here);
  bool is_touched(int k) const { return contacts_[group_[k]].count > 0; }

  const StepStart& start_;
  Body bodies_[4];
  // Bodies that touch each other, directly or not, are in one group and are solved together.
  int group_[3] = {0, 1, 2};
  Contacts contacts_[3];
};

Scene::Scene(const StepStart& start, float puck_spin) : start_(start) {
  for (int k = 0; k < 2; ++k) {
    if (!is_moved(k)) continue;
    const Racket& racket = start.rackets[k];
    Body& body = bodies_[k];
    body.angle = racket.angle;
    body.rotation = start.rotations[k];
    body.offset = {k == 0 ? -kRacketCentre : kRacketCentre, 0.0f};
    body.centre = Vector{racket.x, racket.y} + rotated(body.rotation, body.offset);
    body.velocity = {racket.vx, racket.vy};
    body.spin = racket.spin;
    body.inverse_mass = 1.0f / kRacketMass;
    body.inverse_inertia = 1.0f / kRacketInertia;
    body.is_round = false;
  }
  Body& puck = bodies_[kPuck];
  puck = kNothing;
  puck.centre = start.puck;
  puck.velocity = start.puck_velocity;
  puck.spin = puck_spin;
  puck.inverse_mass = 1.0f / kPuckMass;
  puck.inverse_inertia = 1.0f / kPuckInertia;
  puck.is_round = true;
  bodies_[kGround] = kNothing;
}

Contacts& Scene::merged_group(int k, int other) {
  const int from = group_[other], to = group_[k];
  if (from != to) {
    for (int& group : group_) group = group == from ? to : group;
    contacts_[to].take(contacts_[from]);
  }
  return contacts_[to];
}

int Scene::touch() {
  const float puck_racket = std::sqrt(kPuckFriction * kRacketFriction);
  const int near = start_.near;
  int touching = 0;
  // Contacts between moving bodies first, because they determine the groups.
  if (near & kRacketsNear) {
    const Contact contact = touch_polygons(bodies_[0], place(0), bodies_[1], place(1));
    if (contact.count > 0) merged_group(0, 1).add(contact, kRacketFriction, 0.0f);
  }
  for (int k = 0; k < 2; ++k) {
    if (!(near & kPuckNearRacket << k)) continue;
    const Contact contact = touch_circle(bodies_[k], kRackets[k], bodies_[kPuck]);
    if (contact.count == 0) continue;
    touching |= 1 << k;
    merged_group(k, kPuck).add(contact, puck_racket, kPuckRestitution);
  }
  for (int k = 0; k < 2; ++k) {
    if (!(near & kRacketNearWall << k)) continue;
    touch_barriers(k, place(k));
  }
  if (near & kPuckNearWall) {
    const float friction = std::sqrt(kWallFriction * kPuckFriction);
    for (int k = 0; k < kFirstGoal; ++k) {
      const Contact contact = touch_circle(bodies_[kGround], kBarriers[k].shape, bodies_[kPuck]);
      contacts_[group_[kPuck]].add(contact, friction, kPuckRestitution);
    }
  }
  return touching;
}

void Scene::touch_barriers(int racket, const Placed& here) {
  const float friction = std::sqrt(kWallFriction * kRacketFriction);
  const Box box = here.box.grown(2.0f * kSkin);
  for (const Barrier& barrier : kBarriers) {
    if (!box.meets(barrier.shape.box)) continue;
    const Contact contact = touch_polygons(bodies_[kGround], barrier.shape, bodies_[racket], here);
    contacts_[group_[racket]].add(contact, friction, 0.0f);
  }
}

bool Scene::is_goal(int k) {
  if (!(start_.near & kPuckNearWall)) return false;
  const Polygon& goal = kBarriers[kFirstGoal + k].shape;
  return touch_circle(bodies_[kGround], goal, bodies_[kPuck]).count > 0;
}

void Scene::solve_and_move() {
  for (Contacts& contacts : contacts_) {
    if (contacts.count > 0) solve_velocities(contacts);
  }
  for (int k = 0; k < 3; ++k) {
    if (is_moved(k)) move(bodies_[k], kStep);
  }
  for (Contacts& contacts : contacts_) {
    if (contacts.count > 0) solve_positions(contacts, kUsual);
  }
}

void Scene::sweep() {
  Body& ground = bodies_[kGround];
  for (int k = 0; k < 2; ++k) {
    Body& body = bodies_[k];
    if (!(start_.near & kRacketNearWall << k)) {
      // It can reach a wall only if it was pushed.
      if (!is_moved(k) || !is_touched(k)) continue;
      const Vector origin = sign_of(k) * body.origin();
      if (is_clear(origin.x, origin.y, body.rotation.sine, body.rotation.cosine)) continue;
    }
    const Racket& from = start_.rackets[k];
    const Vector centre = Vector{from.x, from.y} + rotated(start_.rotations[k], body.offset);
    sweep_racket(body, kRackets[k], ground, centre, from.angle);
  }
  if (start_.near & kPuckNearWall || is_touched(kPuck)) {
    sweep_puck(bodies_[kPuck], ground, start_.puck);
  }
}

/// Clips a coordinate, and stops a motion out of bounds, in case the solver fails to.
void contain(float& position, float& speed, float limit) {
  if (std::abs(position) <= limit) return;
  position = std::copysign(limit, position);
  if (speed * position > 0.0f) speed = 0.0f;
}

}  // namespace

void resolve(const StepStart& start, State& state) {
  Scene scene(start, state.puck_spin);
  const int touching = scene.touch();
  const int new_touches = touching & ~state.touching;
  state.touching = static_cast<uint8_t>(touching);
  for (int k = 0; k < 2; ++k) {
    const bool comes = sign_of(k) * start.puck_vx_before < 0.1f;
    if (new_touches >> k & 1 && comes && state.keeps && state.kept[k] == 0.0f)
      state.kept[k] = kKept;
    if (scene.is_goal(k)) state.winner = k == 0 ? -1 : 1;
  }
  scene.solve_and_move();
  scene.sweep();
  for (int k = 0; k < 2; ++k) {
    if (!scene.is_moved(k)) continue;
    const Body& body = scene.racket(k);
    const Vector origin = body.origin();
    Racket& racket = state.rackets[k];
    racket = {origin.x, origin.y, body.angle, body.velocity.x, body.velocity.y, body.spin};
    contain(racket.x, racket.vx, kRacketFarthestX);
    contain(racket.y, racket.vy, kRacketFarthestY);
  }
  if (!scene.is_moved(kPuck)) return;
  const Body& puck = scene.puck();
  state.puck_x = puck.centre.x;
  state.puck_y = puck.centre.y;
  state.puck_vx = puck.velocity.x;
  state.puck_vy = puck.velocity.y;
  state.puck_spin = puck.spin;
  contain(state.puck_y, state.puck_vy, kHalfHeight);
  if (state.winner) return contain(state.puck_x, state.puck_vx, kWorldHalfWidth);
  if (std::abs(state.puck_x) <= kGoalBack + kPuckRadius) return;
  // The puck would pass through the goal in one step. Stop it inside; the next step counts it.
  contain(state.puck_x, state.puck_vx, kGoalBack + kPuckRadius);
  contain(state.puck_y, state.puck_vy, kGoalHalfMouth);
}

}  // namespace shoal::hockey
