// Operations by the time that they take, and by the bytes of what they make.
#pragma once

#include "runtime/report/Measurement.h"
#include "runtime/report/Section.h"

namespace hydra::report {

/// `ranking`: [{"rank", "name", "microseconds", "percent", "calls", "host_microseconds"}], all; the
/// 20 with most time in the table. The name is that of a kernel, or of the operation that a
/// function of the executor does. Host time is that of the thread that runs the plan: on a CPU that
/// of the operation, on a GPU that of its launch, and nothing in a graph that is replayed.
Section opTimes(const Measurement &measured);

/// `allocations`: [{"rank", "name", "bytes", "percent", "values", "largest_bytes"}], all; the 15
/// with most bytes in the table. Bytes are those of all values in the transient segment that
/// operations of the name make in one run of each program of a step; `input` is what a run is
/// given.
Section opAllocations(const planfile::Plan &plan);

} // namespace hydra::report
