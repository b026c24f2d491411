#include "batch_step.h"

#include <cstddef>

#include "contact_step.h"
#include "racket_drive.h"

namespace shoal::hockey {

namespace {

/// The positions of the leading floats of a State.
enum Column {
  kRacketColumns = 0,  // of player 1, then of player 2
  kPuckColumns = 12,
  kKeptColumns = 16,
  kSpinColumn = 18,
  kShotColumns = 19,
  kReadColumns = 24,
  kWrittenColumns = 20,  // including the first element of the shot
};
static_assert(offsetof(State, puck_x) == kPuckColumns * sizeof(float));
static_assert(offsetof(State, kept) == kKeptColumns * sizeof(float));
static_assert(offsetof(State, puck_spin) == kSpinColumn * sizeof(float));
static_assert(offsetof(State, shot) == kShotColumns * sizeof(float));
static_assert(sizeof(State) >= kReadColumns * sizeof(float));

/// The actions of both players of each match.
struct Actions {
  Lanes x[2], y[2], turn[2], shoot[2];
};

struct Block {
  Rackets before[2], after[2];  // poses before and after the step, velocities after drive()
  Lanes held_vx[2], held_vy[2];
  Lanes sine[2], cosine[2];  // before the step
  Lanes kept[2];
  Lanes puck_x, puck_y, puck_vx, puck_vy;  // before the step, after keep()
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

SHOAL_INLINE void drive_and_move(const Actions& actions, Block& block, int p) {
  Rackets racket = block.before[p];
  drive(racket, actions.x[p], actions.y[p], actions.turn[p], block.held_vx[p], block.held_vy[p]);
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

/// Moves a held puck with its racket, or shoots it.
SHOAL_INLINE void keep(const Actions& actions, Block& block, int p) {
  const float sign = sign_of(p);
  const Rackets& racket = block.before[p];
  const Flags holds = block.kept[p] > 1.0f;
  const Lanes remaining = block.kept[p] - 1.0f;
  const Flags shoots = holds & ((remaining == 1.0f) | (actions.shoot[p] > 0.5f));
  const Lanes none{}, speed = shoots ? none + sign * kShotSpeed : none;
  block.puck_x = holds ? sign * racket.x : block.puck_x;
  block.puck_y = holds ? sign * racket.y : block.puck_y;
  block.puck_vx = holds ? sign * block.held_vx[p] : block.puck_vx;
  block.puck_vy = holds ? sign * block.held_vy[p] : block.puck_vy;
  block.shot_x += speed * block.cosine[p];
  block.shot_y += speed * block.sine[p];
  block.kept[p] = shoots ? none : (holds ? remaining : block.kept[p]);
}

/// Moves a free puck.
SHOAL_INLINE void move_puck(Block& block) {
  block.next_puck_vx = (block.puck_vx + block.shot_x) * block.damping;
  block.next_puck_vy = (block.puck_vy + block.shot_y) * block.damping;
  block.next_puck_x = block.puck_x + kStep * block.next_puck_vx;
  block.next_puck_y = block.puck_y + kStep * block.next_puck_vy;
  const Flags clear = is_puck_clear(block.puck_x, block.puck_y) &
                      is_puck_clear(block.next_puck_x, block.next_puck_y);
  block.near |= bit(clear == 0, kPuckNearWall);
}

/// Determines which rackets the puck may touch and whether the rackets may touch each other.
SHOAL_INLINE void find_near(Block& block) {
  for (int p = 0; p < 2; ++p) {
    constexpr float kReach = kPuckRadius + kSkin + kRounding;
    const Rackets& racket = block.before[p];
    const Lanes dx = sign_of(p) * block.puck_x - racket.x;
    const Lanes dy = sign_of(p) * block.puck_y - racket.y;
    // In the frame of the racket, whose front is at 0.1 and whose back is at -0.42.
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

/// Reads the states; converts rackets to the frames of their players.
SHOAL_INLINE void load(const State* states, int count, Block& block, Lanes& spin) {
  const float* rows[kLanes];
  // Lanes without a match repeat the last one.
  for (int k = 0; k < kLanes; ++k) rows[k] = &states[k < count ? k : count - 1].rackets[0].x;
  Lanes columns[kReadColumns];
  read_rows(rows, columns);
  for (int p = 0; p < 2; ++p) {
    const Lanes* racket = columns + kRacketColumns + 6 * p;
    const float sign = sign_of(p);
    block.before[p] = {sign * racket[0], sign * racket[1], racket[2],
                       sign * racket[3], sign * racket[4], racket[5]};
    block.kept[p] = columns[kKeptColumns + p];
  }
  block.puck_x = columns[kPuckColumns];
  block.puck_y = columns[kPuckColumns + 1];
  block.puck_vx = columns[kPuckColumns + 2];
  block.puck_vy = columns[kPuckColumns + 3];
  block.shot_x = columns[kShotColumns];
  block.shot_y = columns[kShotColumns + 1];
  spin = columns[kSpinColumn];
  constexpr float kFast = 25.0f;
  const Lanes none{}, squared = block.puck_vx * block.puck_vx + block.puck_vy * block.puck_vy;
  block.damping =
      squared > kFast * kFast ? none + (1.0f - 10.0f * kStep) : none + (1.0f - 0.05f * kStep);
  block.near = Flags{};
}

/// Writes the states after the step. They are final if nothing touches.
SHOAL_INLINE void store(const Block& block, const Lanes& spin, State* states, int count) {
  float* rows[kLanes];
  for (int k = 0; k < kLanes; ++k) rows[k] = &states[k < count ? k : count - 1].rackets[0].x;
  Lanes columns[kWrittenColumns];
  for (int p = 0; p < 2; ++p) {
    const Rackets& racket = block.after[p];
    const float sign = sign_of(p);
    const Lanes numbers[] = {sign * racket.x,  sign * racket.y,  racket.angle,
                             sign * racket.vx, sign * racket.vy, racket.spin};
    for (int k = 0; k < 6; ++k) columns[kRacketColumns + 6 * p + k] = numbers[k];
    columns[kKeptColumns + p] = block.kept[p];
  }
  columns[kPuckColumns] = block.next_puck_x;
  columns[kPuckColumns + 1] = block.next_puck_y;
  columns[kPuckColumns + 2] = block.next_puck_vx;
  columns[kPuckColumns + 3] = block.next_puck_vy;
  const Lanes limit = Lanes{} + kMaxTurn / kStep;
  columns[kSpinColumn] = smaller(larger(spin, -limit), limit);
  columns[kShotColumns] = Lanes{};
  write_rows(columns, rows, count);
}

SHOAL_INLINE Actions read(const PlayerAction* const (&rows)[kLanes]) {
  static_assert(sizeof(PlayerAction) == 4 * sizeof(float));
  const float* numbers[kLanes];
  for (int k = 0; k < kLanes; ++k) numbers[k] = &rows[k]->x;
  Lanes columns[8];
  read_rows(numbers, columns);
  return {{columns[0], columns[4]},
          {columns[1], columns[5]},
          {columns[2], columns[6]},
          {columns[3], columns[7]}};
}

SHOAL_WIDE void advance(const PlayerAction* const (&rows)[kLanes], State* states, int count,
                        Block& block) {
  const Actions actions = read(rows);
  Lanes spin;
  load(states, count, block, spin);
  drive_and_move(actions, block, 0);
  drive_and_move(actions, block, 1);
  keep(actions, block, 0);
  keep(actions, block, 1);
  move_puck(block);
  find_near(block);
  store(block, spin, states, count);
}

Racket racket_of(const Rackets& rackets, int p, int k) {
  const float sign = sign_of(p);
  return {sign * rackets.x[k],  sign * rackets.y[k],  rackets.angle[k],
          sign * rackets.vx[k], sign * rackets.vy[k], rackets.spin[k]};
}

/// Completes the step of a match in which bodies may touch.
void finish(const Block& block, int k, State& state) {
  StepStart start;
  for (int p = 0; p < 2; ++p) {
    start.rackets[p] = racket_of(block.before[p], p, k);
    start.rotations[p] = {block.sine[p][k], block.cosine[p][k]};
  }
  start.puck = {block.puck_x[k], block.puck_y[k]};
  start.puck_velocity = {block.next_puck_vx[k], block.next_puck_vy[k]};
  start.puck_vx_before = block.puck_vx[k];
  start.near = block.near[k];
  resolve(start, state);
}

}  // namespace

void step_block(State* states, int count, const PlayerAction* const (&actions)[kLanes]) {
  Block block;
  advance(actions, states, count, block);
  for (int k = 0; k < count; ++k) {
    State& state = states[k];
    state.shot[1] = 0.0f;
    if (block.near[k] == 0) {
      state.touching = 0;
    } else {
      finish(block, k, state);
    }
  }
}

}  // namespace shoal::hockey
