// Ends a worker process when the process that started it is gone, however that happened.
#pragma once

namespace shoal {

/// Starts a thread that does nothing but wait for the end of process `parent`, and then kills this
/// process and whatever it has started. It needs no GIL, so nothing an environment does delays it.
/// With `dies_with_thread` the system also ends this process together with the thread that started
/// it, which works for a stopped process as well.
void start_lifeline(int parent, bool dies_with_thread);

}  // namespace shoal
