// Executors by the flags of hydra-run.
#include "tools/hydra-run/Devices.h"
#include "runtime/cpu/Affinity.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/cuda/CudaExecutor.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/run/StandardOutput.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <string>

using namespace hydra;
using support::fail;

namespace {

/// Ranks that may use the same processors share them out.
unsigned threadsOf(const RunOptions &options, const runtime::Channel *channel) {
  if (options.threads > 0)
    return options.threads;
  return std::max(1u, runtime::usableProcessors() / (channel ? channel->sharers() : 1));
}

/// On several ranks each has the GPU of its number on its machine.
runtime::CudaOptions cudaOptions(const RunOptions &options, runtime::Channel *channel = nullptr,
                                 uint32_t localRank = 0) {
  const size_t number = options.device.find(':');
  return {.device = number == std::string::npos ? static_cast<int>(localRank)
                                                : std::stoi(options.device.substr(number + 1)),
          .graph = options.graph,
          .graphAfter = options.graphAfter,
          .check = options.check,
          .poison = options.poison,
          .allowNondeterministic = options.allowNondeterministic,
          .profile = !options.profile.empty(),
          .threads = threadsOf(options, channel),
          .ranks = channel};
}

/// What the ranks of this machine may take, in equal parts; 0: all that there is.
uint64_t memoryOf(const runtime::Channel *channel) {
  return channel ? runtime::availableMemory() / channel->neighbours() : 0;
}

} // namespace

std::unique_ptr<runtime::Executor>
hydra::makeExecutor(const RunOptions &options, const runtime::PlanFile &file,
                    runtime::Channel *channel, runtime::Communicator *ranks, uint32_t localRank) {
  const bool cuda = options.device.empty()
                        ? file.plan().target()->kind() == planfile::TargetKind::cuda
                        : options.device != "cpu";
  if (const char *flag = options.check            ? "check"
                         : !options.graph         ? "no-graph"
                         : options.graphAfter > 0 ? "graph-after"
                                                  : nullptr;
      flag && !cuda)
    fail("--{} is for GPUs; this plan runs on the CPU", flag);
  if (!cuda)
    return std::make_unique<runtime::CpuExecutor>(
        file, runtime::CpuOptions{.threads = threadsOf(options, channel),
                                  .memoryAvailable = memoryOf(channel),
                                  .poison = options.poison,
                                  .dryRun = options.dryRun,
                                  .ranks = ranks});
  return runtime::makeCudaExecutor(file, cudaOptions(options, channel, localRank));
}

void hydra::tune(const RunOptions &options, const runtime::PlanFile &file) {
  if (file.plan().target()->kind() != planfile::TargetKind::cuda)
    fail("--tune: {} is a plan for {}; there is nothing to tune on a CPU", file.origin(),
         support::shown(file.plan().target()->name()->string_view()));
  const std::unique_ptr<planfile::PlanT> content(file.plan().UnPack());
  runtime::print(runtime::tunePlan(file, cudaOptions(options), *content));
  runtime::writePlan(options.output, *content);
}
