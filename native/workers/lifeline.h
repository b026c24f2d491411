// Ends a worker process when the process that started it ends for any reason.
#pragma once

namespace shoal {

/// Starts a thread that waits for the end of process `parent`, and then kills this process and the
/// processes in its group. The thread does not need the GIL, so an environment cannot delay it.
/// With `dies_with_thread` the kernel also kills this process when the thread that started it ends,
/// which works for a stopped process as well.
void start_lifeline(int parent, bool dies_with_thread);

}  // namespace shoal
