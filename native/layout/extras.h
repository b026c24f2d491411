// Extras: the values of a row that are not in the arena, and are sent to another process as
// objects. These are values of object leaves, and actions with another dtype than their leaf.
#pragma once

#include "codec.h"

namespace shoal {

/// Whether any of these rows has values that are not in the arena.
bool has_extras(const Columns& columns, const Slots& rows);

/// The extras of these rows: (a list for each object leaf, a list or None for each leaf).
Ref get_extras(const Columns& columns, const Slots& rows);

/// Sets the extras of these rows.
void set_extras(Columns& columns, const Slots& rows, PyObject* extras);

/// Releases the extras of these rows.
void clear_extras(Columns& columns, const Slots& rows);

}  // namespace shoal
