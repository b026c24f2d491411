#include "tabular.h"

#include <algorithm>
#include <cstring>

#include "../kernel_builder.h"
#include "table_drawing.h"

namespace shoal {

namespace {

// Small, to keep many slots in the cache.
struct State {
  int32_t s;
  int8_t is_fickle;    // whether the passenger will still change the destination
  int8_t last_action;  // -1 before the first; for rendering
};

constexpr int64_t kMaskBytes = 6;  // only Taxi has action masks; it has six actions
constexpr int64_t kTaxiLocations = 4;
constexpr int64_t kInTaxi = 4;

/// A decoded state of Taxi.
struct TaxiState {
  int64_t cell, passenger, destination;

  explicit TaxiState(int64_t s)
      : cell(s / 20), passenger(s / 4 % 5), destination(s % kTaxiLocations) {}
  int64_t encoded() const { return (cell * 5 + passenger) * kTaxiLocations + destination; }
};

/// Returns the index of the first cumulative probability above `number`, or 0 if there is none.
int64_t sample_index(const double* begin, const double* end, double number) {
  const double* position = std::upper_bound(begin, end, number);
  return position == end ? 0 : position - begin;
}

/// Returns the transition selected by `number`, in the same way. The search visits all transitions,
/// because an early exit would be mispredicted by the processor.
const Transition& sample_transition(const Transition* first, const Transition* last,
                                    double number) {
  if (last - first == 1)
    return *first;  // independent of the number, for instruction-level parallelism
  int64_t below = 0;
  for (const Transition* transition = first; transition < last; ++transition) {
    below += !(transition->cumulative > number);
  }
  return first[below == last - first ? 0 : below];
}

/// Writes observations and infos of a run of slots. Holds copies of all pointers: the compiler
/// could otherwise not exclude that a write changes them, and would reload them for every slot.
class ResultWriter {
 public:
  ResultWriter(const Table& table, const shoal_slots* slots)
      : observations_(static_cast<int64_t*>(slots->observations[0])),
        probabilities_(static_cast<double*>(slots->infos[0])),
        masks_(table.action_masks.empty() ? nullptr : static_cast<int8_t*>(slots->infos[1])),
        table_masks_(table.action_masks.data()) {}

  void operator()(int64_t k, int32_t s, double probability) const {
    observations_[k] = s;
    probabilities_[k] = probability;
    if (masks_ == nullptr) return;
    std::memcpy(masks_ + k * kMaskBytes, table_masks_ + s * kMaskBytes, kMaskBytes);
  }

 private:
  int64_t* const observations_;
  double* const probabilities_;
  int8_t* const masks_;
  const int8_t* const table_masks_;
};

int64_t reset(const shoal_slots* slots) {
  const auto& table = *static_cast<const Table*>(slots->tables);
  auto* states = static_cast<State*>(slots->state);
  const ResultWriter write_results(table, slots);
  const double* initial = table.initial.data();
  for (int64_t k = 0; k < slots->count; ++k) {
    shoal_random* random = slots->random + k;
    State& state = states[k];
    state.s = static_cast<int32_t>(
        sample_index(initial, initial + table.states, shoal_random_double(random)));
    state.is_fickle =
        table.fickle_probability >= 0.0 && shoal_random_double(random) < table.fickle_probability;
    state.last_action = -1;
    write_results(k, state.s, 1.0);
  }
  return SHOAL_OK;
}

/// Returns the state after a move, in which a fickle passenger may change the destination.
int32_t with_new_destination(State& state, int32_t next, shoal_random* random) {
  const TaxiState before(state.s);
  TaxiState after(next);
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
      return shoal_fail(slots, k, "the state is not in the table");
    }
    shoal_random* random = slots->random + k;
    const int32_t* start = starts + state.s * action_count + actions[k];
    const Transition& transition = sample_transition(transitions + start[0], transitions + start[1],
                                                     shoal_random_double(random));
    const int32_t next =
        state.is_fickle ? with_new_destination(state, transition.next, random) : transition.next;
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
    const TaxiState place(state.s);
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
