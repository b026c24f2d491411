// Frame stacks from a ring buffer.
#pragma once

#include "../python/object.h"

namespace shoal {

/// Writes the frames of a ring into `out`, the oldest first.
///
/// The first axis of `ring` is that of the frames, and `oldest` is the index of the oldest one.
/// Both arrays are contiguous and have the same dtype and size. Frames consist of chunks of `chunk`
/// elements; in `out`, the corresponding chunks of all frames are adjacent.
void stack_frames(nb::handle ring, Py_ssize_t oldest, Py_ssize_t chunk, nb::handle out);

}  // namespace shoal
