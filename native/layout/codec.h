// Conversion between Python values and columns.
#pragma once

#include "tree.h"

namespace shoal {

/// The slots of a batch, in the batch's order.
struct Slots {
  const int64_t* numbers = nullptr;  // null for a range
  Py_ssize_t count = 0;
  Py_ssize_t first = 0;  // of a range

  Py_ssize_t operator[](Py_ssize_t k) const { return numbers ? numbers[k] : first + k; }
};

/// Whether an array with another dtype than its leaf is kept or cast, if its values fit.
enum class DtypeMismatch { kKeep, kCast };

/// Checks a batch of actions and writes it to the rows of its slots. Writes nothing if a value is
/// invalid, except that a slot marked in `ignored` may have any value.
void encode_batch(const Tree& tree, PyObject* batch, const Slots& slots, const uint8_t* ignored,
                  DtypeMismatch dtype_mismatch, Columns& columns);

/// The value of a row, as a new object of the type that Gymnasium passes to an environment.
Ref decode_row(const Tree& tree, const Columns& columns, Py_ssize_t row);

/// Checks an observation and writes it to a row. Values of object leaves are copied if `deep`,
/// otherwise shared.
void store_row(const Tree& tree, PyObject* value, Columns& columns, Py_ssize_t row, bool deep);

/// The first `rows` rows as a batch: the arrays, without a copy, in the structure of the space.
Ref assemble(const Tree& tree, const Columns& columns, Py_ssize_t rows);

}  // namespace shoal
