// What each part of the model takes: forward, backward, the first time, and the bytes that it
// leaves.
#pragma once

#include "runtime/report/Measurement.h"
#include "runtime/report/Section.h"

namespace hydra::report {

/// `module_tree`: [{"path", "depth", "forward_microseconds", "backward_microseconds",
/// "other_microseconds", "first_microseconds", "memory_delta_bytes"}] of every part, each with all
/// that is inside of it; `` is the whole model and all that belongs to no part. The table has
/// layers as one, `layers.*`, and leaves out what takes less than a hundredth.
///
/// Forward is with the loss; other is clipping and the optimizer. The first time is that of all
/// phases in the first step of the process, null where it was not measured. The memory delta is
/// what the forward pass makes there and is live behind it.
Section moduleTree(const planfile::Plan &plan, const Measurement &measured);

} // namespace hydra::report
