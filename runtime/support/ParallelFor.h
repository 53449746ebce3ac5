// Work on the host that many threads share, now and then: drawing, rounding, clearing.
#pragma once

#include <cstdint>
#include <functional>

namespace hydra::support {

/// Calls work(task) for each task in [0, tasks) on at most `threads` threads, the calling one among
/// them, and returns when all have ended; with fewer threads where the system gives no more. Tasks
/// are taken one after the other by whichever thread is free, so which of them runs a task must not
/// matter. An exception ends its thread's part, and one of them is thrown here.
///
/// Threads begin and end with the call: some ten microseconds each.
void parallelFor(unsigned threads, int64_t tasks, const std::function<void(int64_t task)> &work);

} // namespace hydra::support
