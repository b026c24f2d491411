// Ends a worker process when the process that started it is gone, however that happened.
#pragma once

namespace shoal {

/// Starts a thread that does nothing but wait for the end of process `parent`, and then kills this
/// process and whatever it has started. It needs no GIL, so nothing an environment does delays it.
void start_lifeline(int parent);

}  // namespace shoal
