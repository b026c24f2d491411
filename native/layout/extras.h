// What of a row has no place in the arena, and so must travel to another process as objects: values
// of no fixed shape, and actions that came in another dtype than their leaf's.
#pragma once

#include "codec.h"

namespace shoal {

/// Whether any of these rows has something that is not in the arena.
bool has_extras(const Columns& columns, const Slots& rows);

/// The extras of these rows: (a list for each object leaf, a list or None for each leaf).
Ref get_extras(const Columns& columns, const Slots& rows);

/// Puts extras into these rows.
void set_extras(Columns& columns, const Slots& rows, PyObject* extras);

/// Lets go of the extras of these rows.
void clear_extras(Columns& columns, const Slots& rows);

}  // namespace shoal
