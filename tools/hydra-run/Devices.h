// What runs a plan: this machine's processors or one of its GPUs.
#pragma once

#include "runtime/ranks/Channel.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/run/Executor.h"
#include "tools/hydra-run/Options.h"

#include <cstdint>
#include <memory>

namespace hydra {

/// The plan on the device asked for, or the one that it was compiled for; `channel` and `ranks` are
/// null where there is one rank. Throws Error for flags that the device has not.
std::unique_ptr<runtime::Executor> makeExecutor(const RunOptions &options,
                                                const runtime::PlanFile &file,
                                                runtime::Channel *channel,
                                                runtime::Communicator *ranks, uint32_t localRank);

/// Measures what the plan may do in several ways, and writes the plan with the fastest of them.
void tune(const RunOptions &options, const runtime::PlanFile &file);

} // namespace hydra
