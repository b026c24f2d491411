#include "tabular.h"

#include <algorithm>
#include <cstring>

#include "../kernel_builder.h"
#include "table_drawing.h"

namespace shoal {

namespace {

// Small, since there is one for every slot.
struct State {
  int32_t s;
  int8_t is_fickle;    // whether the passenger is still to change their mind
  int8_t last_action;  // -1 before the first; for pictures
};

constexpr int64_t kMaskBytes = 6;  // only the taxi has masks: one for each of its six actions
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

/// The same among a few transitions. All are looked at: nobody can guess where a search would end,
/// least of all the processor.
const Transition& drawn(const Transition* first, const Transition* last, double number) {
  if (last - first == 1) return *first;  // without waiting for the number
  int64_t below = 0;
  for (const Transition* transition = first; transition < last; ++transition) {
    below += !(transition->cumulative > number);
  }
  return first[below == last - first ? 0 : below];
}

/// Where a run of slots tells of itself. Pointers of its own: what is written could otherwise be
/// the table, as far as the compiler knows, and the table would be read again and again.
class ResultWriter {
 public:
  ResultWriter(const Table& table, const shoal_slots* slots)
      : observations_(static_cast<int64_t*>(slots->observations[0])),
        probabilities_(static_cast<double*>(slots->infos[0])),
        masks_(table.action_masks.empty() ? nullptr : static_cast<int8_t*>(slots->infos[1])),
        known_masks_(table.action_masks.data()) {}

  void operator()(int64_t k, int32_t s, double probability) const {
    observations_[k] = s;
    probabilities_[k] = probability;
    if (masks_ == nullptr) return;
    std::memcpy(masks_ + k * kMaskBytes, known_masks_ + s * kMaskBytes, kMaskBytes);
  }

 private:
  int64_t* const observations_;
  double* const probabilities_;
  int8_t* const masks_;
  const int8_t* const known_masks_;
};

int64_t reset(const shoal_slots* slots) {
  const auto& table = *static_cast<const Table*>(slots->tables);
  auto* states = static_cast<State*>(slots->state);
  const ResultWriter write_results(table, slots);
  const double* initial = table.initial.data();
  for (int64_t k = 0; k < slots->count; ++k) {
    shoal_random* random = slots->random + k;
    State& state = states[k];
    state.s =
        static_cast<int32_t>(chosen(initial, initial + table.states, shoal_random_double(random)));
    state.is_fickle =
        table.fickle_probability >= 0.0 && shoal_random_double(random) < table.fickle_probability;
    state.last_action = -1;
    write_results(k, state.s, 1.0);
  }
  return SHOAL_OK;
}

/// The state after a move in which the passenger may have changed their mind.
int32_t with_new_mind(State& state, int32_t next, shoal_random* random) {
  const TaxiPlace before(state.s);
  TaxiPlace after(next);
  if (before.passenger != kInTaxi || before.cell == after.cell) return next;
  state.is_fickle = 0;
  const auto other = static_cast<int64_t>(shoal_random_below(random, kTaxiLocations - 1));
  after.destination = other + (other >= before.destination);
  return static_cast<int32_t>(after.encoded());
}

int64_t step(const shoal_slots* slots) {
  const auto& table = *static_cast<const Table*>(slots->tables);
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const int64_t*>(slots->actions[0]);
  const ResultWriter write_results(table, slots);
  const Transition* transitions = table.transitions.data();
  const int32_t* starts = table.starts.data();
  const int64_t state_count = table.states, action_count = table.actions;
  double* rewards = slots->rewards;
  uint8_t* terminated = slots->terminated;
  for (int64_t k = 0; k < slots->count; ++k) {
    State& state = states[k];
    if (state.s < 0 || state.s >= state_count) {
      return shoal_fail(slots, k, "the state is none of the table's");
    }
    shoal_random* random = slots->random + k;
    const int32_t* start = starts + state.s * action_count + actions[k];
    const Transition& transition =
        drawn(transitions + start[0], transitions + start[1], shoal_random_double(random));
    const int32_t next =
        state.is_fickle ? with_new_mind(state, transition.next, random) : transition.next;
    state.s = next;
    state.last_action = static_cast<int8_t>(actions[k]);
    rewards[k] = transition.reward;
    terminated[k] = transition.terminated;
    write_results(k, next, transition.probability);
  }
  return SHOAL_OK;
}

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& table = *static_cast<const Table*>(slots->tables);
  const auto& state = *static_cast<const State*>(slots->state);
  if (table.style == TableStyle::kTaxi) {
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
                                        array(SHOAL_INT8, kMaskBytes, "action_mask")};
constexpr shoal_leaf kFields[] = {
    field("s", SHOAL_INT32, offsetof(State, s)),
    field("fickle_step", SHOAL_INT8, offsetof(State, is_fickle)),
    field("lastaction", SHOAL_INT8, offsetof(State, last_action)),
};

}  // namespace

TableKernel::TableKernel(Table table) : table_(std::move(table)) {
  auto description = KernelBuilder(table_.name.c_str(), sizeof(State));
  description.observations(kObservation)
      .actions(kAction)
      .fields(kFields)
      .functions(reset, step)
      .images(draw, table_.width, table_.height, table_.frames_per_second);
  if (table_.action_masks.empty()) {
    description.infos(kInfo);
  } else {
    description.infos(kInfoWithMask);
  }
  kernel_ = description;
  kernel_.tables = &table_;
}

}  // namespace shoal
