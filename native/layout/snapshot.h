// Snapshots: environments may re-use the arrays and dicts that they return, so what outlives the
// call is copied at once, as deep as an environment could reach into it.
#pragma once

#include "../python/object.h"

namespace shoal {

/// An info with its dicts and arrays copied; other values are shared, as in Gymnasium.
Ref snapshot_info(PyObject* info);

/// An observation as the environment returned it, with its dicts, tuples and arrays copied. Objects
/// of other types are copied by copy.deepcopy if `deep`, else shared.
Ref snapshot_observation(PyObject* observation, bool deep);

}  // namespace shoal
