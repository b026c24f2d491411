// The front frontend for actions: refuses what is wrong before any environment hears of it.
#pragma once

#include <optional>

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
    take_in(actions, read_slots(slots, state_.count));
  }

  /// The same for a caller who is at work on the slots already.
  void take_in(nb::handle actions, const Slots& chosen) {
    if (mode_ == Autoreset::kDisabled) refuse_finished(chosen);
    // Where the next step will be a reset, the action is never used and may be anything.
    const uint8_t* ignored = mode_ == Autoreset::kNextStep ? state_.finished.data : nullptr;
    encode_batch(tree_, actions.ptr(), chosen, ignored, other_dtypes_, columns_);
  }

  /// A batch of actions for all slots that can be copied as it is, to be checked in its new place.
  struct Plain {
    const char* source;
    char* target;
    Py_ssize_t bytes;  // of one slot
    bool is_bounded;   // then they are of 64-bit integers, one for each slot
    int64_t low, high;
  };

  /// Says where to copy from and to, or nothing where it is not as simple as that.
  std::optional<Plain> plain(nb::handle actions) const {
    if (tree_.root.kind != Node::Kind::kLeaf || !PyArray_CheckExact(actions.ptr())) return {};
    const Leaf& leaf = tree_.leaves[0];
    auto* array = reinterpret_cast<PyArrayObject*>(actions.ptr());
    const bool is_bounded = !leaf.low.empty();
    const bool fits = PyArray_NDIM(array) == static_cast<int>(leaf.shape.size()) + 1 &&
                      PyArray_DIM(array, 0) == state_.count &&
                      std::equal(leaf.shape.begin(), leaf.shape.end(), PyArray_DIMS(array) + 1) &&
                      PyArray_EquivTypes(PyArray_DESCR(array), leaf.dtype()) &&
                      PyArray_ISCARRAY_RO(array) && mode_ != Autoreset::kDisabled;
    if (!fits || (is_bounded && !(leaf.is_int64 && leaf.elements == 1))) return {};
    return Plain{PyArray_BYTES(array), columns_.row(tree_, 0, 0),    leaf.bytes,
                 is_bounded,           is_bounded ? leaf.low[0] : 0, is_bounded ? leaf.high[0] : 0};
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
