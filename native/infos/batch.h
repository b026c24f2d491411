// Conversion of the infos of many slots to a dict of arrays, in Gymnasium's format.
#pragma once

#include "../python/object.h"

namespace shoal {

/// Converts [(row, info), ...] to {key: array, "_key": mask, ...}, recursively for nested dicts.
///
/// The values of a key become an array if they have a common type; otherwise
/// `merge(num_rows, [(row, value), ...])` must return the array.
nb::object batch_infos(nb::list events, Py_ssize_t num_rows, nb::callable merge);

}  // namespace shoal
