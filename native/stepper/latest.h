// The newest observation of each slot, for rows that must be given again without a step.
//
// Small observations are kept as rows of bytes. Large ones, and those with parts of no fixed shape,
// are kept as the objects that the environments returned: a copy would cost more than it is worth.
#pragma once

#include <vector>

#include "../layout/codec.h"

namespace shoal {

class LatestObservations {
 public:
  LatestObservations(const Tree& tree, Py_ssize_t slots);

  /// Takes note of an observation that has just been stored in a row.
  void keep(Py_ssize_t slot, PyObject* observation, const Columns& columns, Py_ssize_t row) {
    if (!as_rows_) {
      objects_[static_cast<size_t>(slot)] = Ref::borrow(observation);
      return;
    }
    seen_[static_cast<size_t>(slot)] = 1;
    copy_row(columns, row, rows_, slot);
  }

  /// Writes a slot's observation to a row, or returns false where there is none yet.
  bool write(Py_ssize_t slot, Columns& columns, Py_ssize_t row, bool deep) const;

  /// The observations by slot, None where there is none; and the way back.
  nb::list save() const;
  void restore(nb::list observations);

  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  void copy_row(const Columns& from, Py_ssize_t row, const Columns& to, Py_ssize_t target) const;

  const Tree& tree_;
  bool as_rows_;
  Columns rows_;
  std::vector<uint8_t> seen_;  // which rows are filled
  std::vector<Ref> objects_;   // where they are not kept as rows
};

}  // namespace shoal
