// Mean and variance of batches, and normalisation of batches, bit for bit equal to NumPy's.
#pragma once

#include "../python/object.h"

namespace shoal {

/// Writes the mean and the variance over the rows of `batch` into `mean` and `var`, which have the
/// batch's dtype, float32 or float64. All arrays are contiguous. A row has at least two elements,
/// since NumPy sums a single column in another order.
void batch_moments(nb::handle batch, nb::handle mean, nb::handle var);

/// Writes (batch - mean) / deviation, clipped to [-limit, limit], into `out`, which is float32. The
/// precision is double if `mean` and `deviation` are float64, single if they and `batch` are
/// float32. All arrays are contiguous.
void normalize_batch(nb::handle batch, nb::handle mean, nb::handle deviation, double limit,
                     nb::handle out);

}  // namespace shoal
