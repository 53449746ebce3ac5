// Functions that the CPU executor has for the actions of steps.
#pragma once

#include "runtime/calls/CallSite.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"
#include "runtime/ranks/Communicator.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace hydra::runtime {

/// A call whose shapes, strides and attributes are settled; only addresses come with each run.
class LibraryCall {
public:
  virtual ~LibraryCall() = default;

  /// What a run needs for each worker, by shapes alone.
  virtual size_t scratchBytesPerWorker() const { return 0; }

  /// args[i] is the first byte of argument i of the step.
  virtual void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) = 0;
};

/// What calls are prepared for.
struct CallResources {
  unsigned threads = 1;          ///< of the pool
  Communicator *ranks = nullptr; ///< null where the plan is for one, and in a dry run
};

using LibraryFactory = std::function<std::unique_ptr<LibraryCall>(const CallSite &site,
                                                                  const CallResources &resources)>;

/// The call that a step asks for. Throws Error when its tensors do not fit, or the CPU has no
/// function for its action.
std::unique_ptr<LibraryCall> prepareCall(const CallSite &site, const CallResources &resources);

/// One for each action; the site's is of that type.
std::unique_ptr<LibraryCall> prepareMatmul(const CallSite &site, unsigned threads);
std::unique_ptr<LibraryCall> prepareAttention(const CallSite &site);
std::unique_ptr<LibraryCall> prepareAttentionGrad(const CallSite &site);
std::unique_ptr<LibraryCall> prepareCachedAttention(const CallSite &site);
std::unique_ptr<LibraryCall> prepareSample(const CallSite &site);
std::unique_ptr<LibraryCall> prepareEmbeddingGrad(const CallSite &site);
std::unique_ptr<LibraryCall> prepareCopy(const CallSite &site);
std::unique_ptr<LibraryCall> prepareTransfer(const CallSite &site);
std::unique_ptr<LibraryCall> prepareFill(const CallSite &site);
std::unique_ptr<LibraryCall> prepareCompact(const CallSite &site);
std::unique_ptr<LibraryCall> prepareRoute(const CallSite &site);
std::unique_ptr<LibraryCall> prepareCountExponents(const CallSite &site);
std::unique_ptr<LibraryCall> prepareGroupedLinear(const CallSite &site, unsigned threads);
std::unique_ptr<LibraryCall> prepareGroupedOuter(const CallSite &site, unsigned threads);
std::unique_ptr<LibraryCall> prepareFft(const CallSite &site);
std::unique_ptr<LibraryCall> prepareLinearRecurrence(const CallSite &site);
std::unique_ptr<LibraryCall> prepareAllGather(const CallSite &site, Communicator *ranks);
std::unique_ptr<LibraryCall> prepareAllToAll(const CallSite &site, Communicator *ranks);

} // namespace hydra::runtime
