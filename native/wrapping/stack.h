// Stacks of frames, put together from a ring of them.
#pragma once

#include "../python/object.h"

namespace shoal {

/// Writes the frames of a ring into `out`, the oldest first.
///
/// `ring` has a frame for each index of its first axis, `oldest` is the index of the oldest one.
/// Both arrays are contiguous, of one dtype and size. A frame is cut into chunks of `chunk`
/// elements, and the chunks of all frames at one place follow each other in `out`.
void stack_frames(nb::handle ring, Py_ssize_t oldest, Py_ssize_t chunk, nb::handle out);

}  // namespace shoal
