// The front door for actions: refuses what is wrong before any environment hears of it.
#pragma once

#include "../layout/extras.h"
#include "bank.h"

namespace shoal {

/// Slot numbers as a caller gives them: None for all, or a one-dimensional int64 array.
Slots read_slots(nb::handle slots, Py_ssize_t num_slots);

class ActionIntake {
 public:
  ActionIntake(const Tree& tree, nb::sequence columns, SlotState& state, Autoreset mode, bool casts)
      : tree_(tree),
        columns_(tree, columns, state.count),
        state_(state),
        mode_(mode),
        other_dtypes_(casts ? OtherDtypes::kCast : OtherDtypes::kAsGiven) {}

  /// Checks actions for these slots and writes them to the arena, or raises and writes nothing.
  void accept(nb::handle actions, nb::handle slots) {
    const Occupied occupied(state_);
    const Slots chosen = read_slots(slots, state_.count);
    if (mode_ == Autoreset::kDisabled) refuse_finished(chosen);
    // Where the next step will be a reset, the action is never used and may be anything.
    const uint8_t* ignored = mode_ == Autoreset::kNextStep ? state_.finished.data : nullptr;
    encode_batch(tree_, actions.ptr(), chosen, ignored, other_dtypes_, columns_);
  }

  /// What of these slots' actions is not in the arena; and a worker's side of that.
  bool has_extras(nb::handle slots) const {
    return shoal::has_extras(columns_, read_slots(slots, state_.count));
  }
  nb::object extras(nb::handle slots) const {
    return nb::steal(get_extras(columns_, read_slots(slots, state_.count)).release());
  }
  void put_extras(nb::handle slots, nb::handle extras) {
    set_extras(columns_, read_slots(slots, state_.count), extras.ptr());
  }
  void drop_extras_of(Py_ssize_t slot) { clear_extras(columns_, {nullptr, 1, slot}); }

  int traverse(visitproc visit, void* arg) const { return columns_.traverse(visit, arg); }

  const Tree& tree() const { return tree_; }
  const Columns& columns() const { return columns_; }

 private:
  void refuse_finished(const Slots& slots) const {
    for (Py_ssize_t k = 0; k < slots.count; ++k) {
      if (!state_.finished[slots[k]]) continue;
      Ref error = error_class("SlotFinishedError");
      raise(error.get(),
            "slot %zd has finished its episode: with autoreset disabled it needs a reset "
            "(options={'reset_mask': ...}) before its next step",
            slots[k]);
    }
  }

  const Tree& tree_;
  Columns columns_;
  SlotState& state_;
  Autoreset mode_;
  OtherDtypes other_dtypes_;
};

}  // namespace shoal
