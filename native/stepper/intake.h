// Validation of actions, before any environment is stepped.
#pragma once

#include <optional>

#include "../layout/extras.h"
#include "bank.h"

namespace shoal {

/// Converts slot numbers from Python: None for all, or a one-dimensional int64 array.
Slots read_slots(nb::handle slots, Py_ssize_t num_slots);

class ActionIntake {
 public:
  ActionIntake(const Tree& tree, nb::sequence columns, SlotState& state, Autoreset mode, bool casts)
      : tree_(tree),
        columns_(tree, columns, state.count),
        state_(state),
        mode_(mode),
        dtype_mismatch_(casts ? DtypeMismatch::kCast : DtypeMismatch::kKeep) {}

  /// Checks actions for these slots and writes them to the arena. Writes nothing if it raises.
  void accept(nb::handle actions, nb::handle slots) {
    const SlotsInUse in_use(state_);
    accept_occupied(actions, read_slots(slots, state_.count));
  }

  /// The same, for callers that hold a SlotsInUse.
  void accept_occupied(nb::handle actions, const Slots& chosen) {
    if (mode_ == Autoreset::kDisabled) refuse_finished(chosen);
    // If the next step is a reset, the action is not used and need not be valid.
    const uint8_t* ignored = mode_ == Autoreset::kNextStep ? state_.finished.data : nullptr;
    encode_batch(tree_, actions.ptr(), chosen, ignored, dtype_mismatch_, columns_);
  }

  /// A copy of actions for all slots without a cast; their bounds are checked after the copy.
  struct DirectCopy {
    const char* source;
    char* target;
    Py_ssize_t bytes;  // of one slot
    bool is_bounded;   // then the actions are 64-bit integers, one per slot
    int64_t low, high;
  };

  /// The source and target of the copy, or nothing if the actions cannot be copied without a cast.
  std::optional<DirectCopy> direct_copy(nb::handle actions) const {
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
    return DirectCopy{
        PyArray_BYTES(array), columns_.row(tree_, 0, 0),    leaf.bytes,
        is_bounded,           is_bounded ? leaf.low[0] : 0, is_bounded ? leaf.high[0] : 0};
  }

  /// The values of these slots' actions that are not in the arena; a worker sets them.
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
  DtypeMismatch dtype_mismatch_;
};

}  // namespace shoal
