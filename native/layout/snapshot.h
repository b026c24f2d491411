// Snapshots: copies of what environments return, since they may reuse these arrays and dicts.
#pragma once

#include "../python/object.h"

namespace shoal {

/// Copies the dicts and arrays of an info; other values are shared, as in Gymnasium.
Ref snapshot_info(PyObject* info);

/// Copies the dicts, tuples and arrays of an observation. Objects of other types are copied by
/// copy.deepcopy if `deep`, otherwise shared.
Ref snapshot_observation(PyObject* observation, bool deep);

}  // namespace shoal
