#include "block.h"

#include <algorithm>

#include "drive.h"
#include "match.h"

namespace shoal::hockey {

namespace {

struct Block {
  Rackets before[2], after[2];  // of the step; both with the velocities after drives
  Lanes held_vx[2], held_vy[2];
  Lanes sine[2], cosine[2];  // before the step
  Lanes kept[2];
  Lanes puck_x, puck_y, puck_vx, puck_vy;  // before the step, when it has been kept or shot
  Lanes damping;                           // of the puck
  Lanes shot_x, shot_y;
  Lanes next_puck_x, next_puck_y, next_puck_vx, next_puck_vy;
  Flags near;  // bits of Near
};

SHOAL_INLINE Flags bit(Flags is_set, int value) { return is_set & value; }

SHOAL_INLINE Flags is_puck_clear(Lanes x, Lanes y) {
  constexpr float kMargin = kPuckRadius + kSkin + kRounding;
  return (magnitude(x) < kHalfWidth - kMargin) & (magnitude(y) < kHalfHeight - kMargin);
}

SHOAL_INLINE void drive_and_move(const Wishes& wishes, Block& block, int p) {
  Rackets racket = block.before[p];
  drive(racket, wishes.x[p], wishes.y[p], wishes.turn[p], block.held_vx[p], block.held_vy[p]);
  block.before[p] = racket;
  Lanes sine, cosine, to_sine, to_cosine;
  sine_cosine(racket.angle, sine, cosine);
  const Flags clear_before = is_clear(racket.x, racket.y, sine, cosine);
  racket.angle += kStep * racket.spin;
  sine_cosine(racket.angle, to_sine, to_cosine);
  racket.x += kStep * racket.vx + kRacketCentre * (to_cosine - cosine);
  racket.y += kStep * racket.vy + kRacketCentre * (to_sine - sine);
  block.sine[p] = sine;
  block.cosine[p] = cosine;
  block.after[p] = racket;
  const Flags clear = clear_before & is_clear(racket.x, racket.y, to_sine, to_cosine);
  block.near |= bit(clear == 0, kRacketNearWall << p);
}

/// A player who keeps the puck carries it along, or shoots it.
SHOAL_INLINE void keep(const Wishes& wishes, Block& block, int p) {
  const float sign = sign_of(p);
  const Rackets& racket = block.before[p];
  const Flags holds = block.kept[p] > 1.0f;
  const Lanes left = block.kept[p] - 1.0f;
  const Flags shoots = holds & ((left == 1.0f) | (wishes.shoot[p] > 0.5f));
  const Lanes none{}, speed = shoots ? none + sign * kShotSpeed : none;
  block.puck_x = holds ? sign * racket.x : block.puck_x;
  block.puck_y = holds ? sign * racket.y : block.puck_y;
  block.puck_vx = holds ? sign * block.held_vx[p] : block.puck_vx;
  block.puck_vy = holds ? sign * block.held_vy[p] : block.puck_vy;
  block.shot_x += speed * block.cosine[p];
  block.shot_y += speed * block.sine[p];
  block.kept[p] = shoots ? none : (holds ? left : block.kept[p]);
}

SHOAL_INLINE void fly(Block& block) {
  block.next_puck_vx = (block.puck_vx + block.shot_x) * block.damping;
  block.next_puck_vy = (block.puck_vy + block.shot_y) * block.damping;
  block.next_puck_x = block.puck_x + kStep * block.next_puck_vx;
  block.next_puck_y = block.puck_y + kStep * block.next_puck_vy;
  const Flags clear = is_puck_clear(block.puck_x, block.puck_y) &
                      is_puck_clear(block.next_puck_x, block.next_puck_y);
  block.near |= bit(clear == 0, kPuckNearWall);
}

/// Finds rackets that the puck may touch, and whether they may touch each other.
SHOAL_INLINE void meet(Block& block) {
  for (int p = 0; p < 2; ++p) {
    constexpr float kReach = kPuckRadius + kSkin + kRounding;
    const Rackets& racket = block.before[p];
    const Lanes dx = sign_of(p) * block.puck_x - racket.x;
    const Lanes dy = sign_of(p) * block.puck_y - racket.y;
    // Where the racket sees it: the racket's front is at 0.1, its back at -0.42.
    const Lanes along = block.cosine[p] * dx + block.sine[p] * dy;
    const Lanes across = block.cosine[p] * dy - block.sine[p] * dx;
    const Flags near =
        (along < 0.1f + kReach) & (along > -0.42f - kReach) & (magnitude(across) < 0.4f + kReach);
    block.near |= bit(near, kPuckNearRacket << p);
  }
  constexpr float kReach = 2.0f * (kRacketReach + kSkin) + kRounding;
  const Lanes dx = block.before[0].x + block.before[1].x;
  const Lanes dy = block.before[0].y + block.before[1].y;
  block.near |= bit(dx * dx + dy * dy < kReach * kReach, kRacketsNear);
}

SHOAL_WIDE void advance(const Wishes& wishes, Block& block) {
  drive_and_move(wishes, block, 0);
  drive_and_move(wishes, block, 1);
  keep(wishes, block, 0);
  keep(wishes, block, 1);
  fly(block);
  meet(block);
}

void load(const State* states, int count, Block& block) {
  block.near = Flags{};
  for (int k = 0; k < kLanes; ++k) {
    // Lanes without a match repeat the last one.
    const State& state = states[std::min(k, count - 1)];
    for (int p = 0; p < 2; ++p) {
      const Racket& racket = state.rackets[p];
      Rackets& before = block.before[p];
      before.x[k] = sign_of(p) * racket.x;
      before.y[k] = sign_of(p) * racket.y;
      before.angle[k] = racket.angle;
      before.vx[k] = sign_of(p) * racket.vx;
      before.vy[k] = sign_of(p) * racket.vy;
      before.spin[k] = racket.spin;
      block.kept[p][k] = state.kept[p];
    }
    block.puck_x[k] = state.puck_x;
    block.puck_y[k] = state.puck_y;
    block.puck_vx[k] = state.puck_vx;
    block.puck_vy[k] = state.puck_vy;
    block.shot_x[k] = state.shot[0];
    block.shot_y[k] = state.shot[1];
    constexpr float kFast = 25.0f;
    const float squared = state.puck_vx * state.puck_vx + state.puck_vy * state.puck_vy;
    block.damping[k] = squared > kFast * kFast ? 1.0f - 10.0f * kStep : 1.0f - 0.05f * kStep;
  }
}

Racket racket_of(const Rackets& rackets, int p, int k) {
  const float sign = sign_of(p);
  return {sign * rackets.x[k],  sign * rackets.y[k],  rackets.angle[k],
          sign * rackets.vx[k], sign * rackets.vy[k], rackets.spin[k]};
}

void store(const Block& block, int k, State& state) {
  state.shot[0] = state.shot[1] = 0.0f;
  for (int p = 0; p < 2; ++p) state.kept[p] = block.kept[p][k];
  if (block.near[k] == 0) {
    for (int p = 0; p < 2; ++p) state.rackets[p] = racket_of(block.after[p], p, k);
    state.puck_x = block.next_puck_x[k];
    state.puck_y = block.next_puck_y[k];
    state.puck_vx = block.next_puck_vx[k];
    state.puck_vy = block.next_puck_vy[k];
    state.touching = 0;
    return;
  }
  Started started;
  for (int p = 0; p < 2; ++p) {
    started.rackets[p] = racket_of(block.before[p], p, k);
    started.rotations[p] = {block.sine[p][k], block.cosine[p][k]};
  }
  started.puck = {block.puck_x[k], block.puck_y[k]};
  started.puck_velocity = {block.next_puck_vx[k], block.next_puck_vy[k]};
  started.puck_vx_before = block.puck_vx[k];
  started.near = block.near[k];
  resolve(started, state);
}

}  // namespace

void step_block(State* states, int count, const Wishes& wishes) {
  Block block;
  load(states, count, block);
  advance(wishes, block);
  for (int k = 0; k < count; ++k) store(block, k, states[k]);
}

}  // namespace shoal::hockey
