// The newest observation of each slot, for batches that include slots that were not stepped.
//
// Small observations are copied to rows. Large ones, and those with object leaves, are kept as the
// objects that the environments returned.
#pragma once

#include <vector>

#include "../layout/codec.h"

namespace shoal {

/// In place of the first row: the row of each slot is its number.
constexpr Py_ssize_t kRowsBySlot = -1;

class LatestObservations {
 public:
  /// Keeps nothing if `slots` is 0.
  LatestObservations(const Tree& tree, Py_ssize_t slots);

  /// Records an environment's observation, if objects are kept.
  void keep_object(Py_ssize_t slot, PyObject* observation) {
    if (!objects_.empty()) objects_[static_cast<size_t>(slot)] = Ref::borrow(observation);
  }

  /// Records the observations of slots, if rows are kept. They are in the rows from `first` on, or
  /// in the rows of the slots' numbers (kRowsBySlot).
  void keep_rows(const Slots& slots, const Columns& columns, Py_ssize_t first);

  /// Writes a slot's observation to a row; returns false if there is none.
  bool write(Py_ssize_t slot, Columns& columns, Py_ssize_t row, bool deep) const;

  /// Saves the observation of each slot, or None, for restore().
  nb::list save() const;
  void restore(nb::list observations);

  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  void copy_rows(const Columns& from, Py_ssize_t row, const Columns& to, Py_ssize_t target,
                 Py_ssize_t count) const;

  const Tree& tree_;
  bool as_rows_;
  Columns rows_;
  std::vector<uint8_t> has_row_;  // by slot
  std::vector<Ref> objects_;      // if observations are not kept as rows
};

}  // namespace shoal
