// Mean and variance of batches, and batches normalised by them, to the bit as NumPy gives them.
#pragma once

#include "../python/object.h"

namespace shoal {

/// Writes the mean and the variance of the rows of `batch` into `mean` and `var`, which have the
/// batch's dtype, float32 or float64. All are contiguous, and a row has two elements at least:
/// NumPy adds up a single column in another order.
void batch_moments(nb::handle batch, nb::handle mean, nb::handle var);

/// Writes (batch - mean) / deviation, limited to [-limit, limit], into `out`, which is float32; in
/// double precision if `mean` and `deviation` are float64, in single if they and `batch` are
/// float32. All are contiguous.
void normalize_batch(nb::handle batch, nb::handle mean, nb::handle deviation, double limit,
                     nb::handle out);

}  // namespace shoal
