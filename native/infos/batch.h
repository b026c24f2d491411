// Infos of many slots as one dict of arrays, in the form that Gymnasium gives them.
#pragma once

#include "../python/object.h"

namespace shoal {

/// Turns [(row, info), ...] into {key: array, "_key": mask, ...}, with nested dicts nested.
///
/// A key whose values are all of one kind becomes an array of that kind here; for any other mix,
/// `merge(num_rows, [(row, value), ...])` is asked for the array.
nb::object batch_infos(nb::list events, Py_ssize_t num_rows, nb::callable merge);

}  // namespace shoal
