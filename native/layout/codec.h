// Between Python values and columns: the four ways data crosses that border.
#pragma once

#include "tree.h"

namespace shoal {

/// The slots that a batch speaks of, in the batch's order.
struct Slots {
  const int64_t* numbers = nullptr;  // null: a range
  Py_ssize_t count = 0;
  Py_ssize_t first = 0;  // of a range

  Py_ssize_t operator[](Py_ssize_t k) const { return numbers ? numbers[k] : first + k; }
};

/// What becomes of an array of another dtype than its leaf's, where the values fit.
enum class OtherDtypes { kAsGiven, kCast };

/// Checks a batch of actions and writes it to the rows of its slots. Nothing is written unless all
/// of it is right, except that a slot marked in `ignored` may hold any value.
void encode_batch(const Tree& tree, PyObject* batch, const Slots& slots, const uint8_t* ignored,
                  OtherDtypes other_dtypes, Columns& columns);

/// The value in a row, as a new object of the kind that Gymnasium passes to an environment.
Ref decode_row(const Tree& tree, const Columns& columns, Py_ssize_t row);

/// Checks one observation and writes it to a row; what has no fixed shape is copied if `deep`, else
/// shared.
void store_row(const Tree& tree, PyObject* value, Columns& columns, Py_ssize_t row, bool deep);

/// The first `rows` rows as a batch: the arrays themselves in the space's structure.
Ref assemble(const Tree& tree, const Columns& columns, Py_ssize_t rows);

}  // namespace shoal
