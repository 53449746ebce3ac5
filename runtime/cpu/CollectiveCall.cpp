// Where the ranks of a plan for CPUs meet.
#include "runtime/calls/CollectiveCall.h"

#include "runtime/cpu/Library.h"

#include <utility>

using namespace hydra::runtime;

namespace {

using Move = void (Communicator::*)(const Exchange &);

class CollectiveCall final : public LibraryCall {
public:
  CollectiveCall(Communicator *ranks, Move move, CollectiveSpec spec)
      : ranks(ranks), move(move), spec(std::move(spec)) {}

  void run(char *const *args, ThreadPool &, const WorkerScratch &) override {
    (ranks->*move)({.axis = spec.axis,
                    .x = reinterpret_cast<const std::byte *>(args[0]),
                    .y = reinterpret_cast<std::byte *>(args[1]),
                    .bytes = spec.bytes,
                    .place = spec.place.c_str()});
  }

private:
  Communicator *ranks; ///< null in a dry run
  Move move;
  CollectiveSpec spec;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareAllGather(const CallSite &site,
                                                              Communicator *ranks) {
  return std::make_unique<CollectiveCall>(ranks, &Communicator::allGather, describeAllGather(site));
}

std::unique_ptr<LibraryCall> hydra::runtime::prepareAllToAll(const CallSite &site,
                                                             Communicator *ranks) {
  return std::make_unique<CollectiveCall>(ranks, &Communicator::allToAll, describeAllToAll(site));
}
