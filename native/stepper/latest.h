// The newest observation of each slot, for rows that must be given again without a step.
//
// Small observations are kept as rows of bytes. Large ones, and those with parts of no fixed shape,
// are kept as the objects that the environments returned: a copy would cost more than it is worth.
#pragma once

#include <vector>

#include "../layout/codec.h"

namespace shoal {

/// Stands for the first row where each slot has the row of its own number.
constexpr Py_ssize_t kRowsBySlot = -1;

class LatestObservations {
 public:
  /// For no slots at all, nothing is kept.
  LatestObservations(const Tree& tree, Py_ssize_t slots);

  /// Takes note of what an environment has returned, where objects are kept.
  void keep_object(Py_ssize_t slot, PyObject* observation) {
    if (!objects_.empty()) objects_[static_cast<size_t>(slot)] = Ref::borrow(observation);
  }

  /// Takes note of these slots' observations, which lie in rows from `first` on, or in the rows of
  /// their numbers (kRowsBySlot), where rows are kept.
  void keep_rows(const Slots& slots, const Columns& columns, Py_ssize_t first);

  /// Writes a slot's observation to a row, or returns false where there is none yet.
  bool write(Py_ssize_t slot, Columns& columns, Py_ssize_t row, bool deep) const;

  /// The observations by slot, None where there is none; and the way back.
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
  std::vector<uint8_t> seen_;  // which rows are filled
  std::vector<Ref> objects_;   // where they are not kept as rows
};

}  // namespace shoal
