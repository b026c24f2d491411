#include "tabular.h"

#include <algorithm>

#include "../description.h"
#include "scenery.h"

namespace shoal {

namespace {

struct State {
  int64_t s;
  int64_t is_fickle;    // whether the passenger is still to change their mind
  int64_t last_action;  // -1 before the first; for pictures
};

constexpr int64_t kTaxiLocations = 4;
constexpr int64_t kInTaxi = 4;

/// A state of the taxi, taken apart.
struct TaxiPlace {
  int64_t cell, passenger, destination;

  explicit TaxiPlace(int64_t s)
      : cell(s / 20), passenger(s / 4 % 5), destination(s % kTaxiLocations) {}
  int64_t encoded() const { return (cell * 5 + passenger) * kTaxiLocations + destination; }
};

/// The first of these whose sum is above the number; the first of all where none is.
int64_t chosen(const double* begin, const double* end, double number) {
  const double* found = std::upper_bound(begin, end, number);
  return found == end ? 0 : found - begin;
}

void tell(const Table& table, const shoal_slots* slots, int64_t k, const State& state,
          double probability) {
  static_cast<int64_t*>(slots->observations[0])[k] = state.s;
  static_cast<double*>(slots->infos[0])[k] = probability;
  if (table.action_masks.empty()) return;
  std::copy_n(table.action_masks.data() + state.s * table.actions, table.actions,
              static_cast<int8_t*>(slots->infos[1]) + k * table.actions);
}

int64_t reset(const shoal_slots* slots) {
  const auto& table = *static_cast<const Table*>(slots->tables);
  auto* states = static_cast<State*>(slots->state);
  const double* initial = table.initial.data();
  for (int64_t k = 0; k < slots->count; ++k) {
    shoal_random* random = slots->random + k;
    State& state = states[k];
    state.s = chosen(initial, initial + table.states, shoal_random_double(random));
    state.is_fickle =
        table.fickle_probability >= 0.0 && shoal_random_double(random) < table.fickle_probability;
    state.last_action = -1;
    tell(table, slots, k, state, 1.0);
  }
  return SHOAL_OK;
}

/// The state after a move in which the passenger may have changed their mind.
int64_t with_new_mind(State& state, int64_t next, shoal_random* random) {
  const TaxiPlace before(state.s);
  TaxiPlace after(next);
  if (before.passenger != kInTaxi || before.cell == after.cell) return next;
  state.is_fickle = 0;
  const int64_t other = shoal_random_below(random, kTaxiLocations - 1);
  after.destination = other + (other >= before.destination);
  return after.encoded();
}

int64_t step(const shoal_slots* slots) {
  const auto& table = *static_cast<const Table*>(slots->tables);
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const int64_t*>(slots->actions[0]);
  for (int64_t k = 0; k < slots->count; ++k) {
    State& state = states[k];
    if (state.s < 0 || state.s >= table.states) {
      return shoal_fail(slots, k, "the state is none of the table's");
    }
    shoal_random* random = slots->random + k;
    const auto pair = static_cast<size_t>(state.s * table.actions + actions[k]);
    const double* first = table.cumulative.data() + table.starts[pair];
    const double* last = table.cumulative.data() + table.starts[pair + 1];
    const auto outcome =
        static_cast<size_t>(table.starts[pair] + chosen(first, last, shoal_random_double(random)));
    int64_t next = table.next[outcome];
    if (state.is_fickle) next = with_new_mind(state, next, random);
    state.s = next;
    state.last_action = actions[k];
    slots->rewards[k] = table.rewards[outcome];
    slots->terminated[k] = table.terminated[outcome];
    tell(table, slots, k, state, table.probabilities[outcome]);
  }
  return SHOAL_OK;
}

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& table = *static_cast<const Table*>(slots->tables);
  const auto& state = *static_cast<const State*>(slots->state);
  if (table.scenery == Scenery::kTaxi) {
    const TaxiPlace place(state.s);
    draw_taxi(canvas, place.cell, place.passenger, place.destination, state.last_action);
  } else {
    draw_grid(canvas, table.rows, table.columns, table.cells.data(), state.s);
  }
}

constexpr shoal_leaf kObservation[] = {number(SHOAL_INT64)};
constexpr shoal_leaf kAction[] = {number(SHOAL_INT64)};
constexpr shoal_leaf kInfo[] = {number(SHOAL_FLOAT64, "prob")};
constexpr shoal_leaf kInfoWithMask[] = {number(SHOAL_FLOAT64, "prob"),
                                        array(SHOAL_INT8, 6, "action_mask")};
constexpr shoal_leaf kFields[] = {
    field("s", SHOAL_INT64, offsetof(State, s)),
    field("fickle_step", SHOAL_INT64, offsetof(State, is_fickle)),
    field("lastaction", SHOAL_INT64, offsetof(State, last_action)),
};

}  // namespace

TableKernel::TableKernel(Table table) : table_(std::move(table)) {
  auto description = Description("Tabular", sizeof(State));
  description.observations(kObservation)
      .actions(kAction)
      .fields(kFields)
      .functions(reset, step)
      .pictures(draw, table_.width, table_.height, table_.frames_per_second);
  if (table_.action_masks.empty()) {
    description.infos(kInfo);
  } else {
    description.infos(kInfoWithMask);
  }
  kernel_ = description;
  kernel_.tables = &table_;
}

}  // namespace shoal
