// hydra-batch-launches: launches of one kernel that do not need each other become one.
#include "passes/Passes.h"
#include "passes/place/Batches.h"
#include "passes/place/Sides.h"

#include "dialects/plan/KernelExpansion.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_BATCHLAUNCHES
#include "passes/Passes.h.inc"

namespace {

/// Bytes of new buffers that an instance may bring to life earlier than before.
constexpr int64_t kEarlierBytes = 1 << 20;

/// Batches of the launches of one program.
class LaunchBatches {
public:
  explicit LaunchBatches(plan::ProgramOp program)
      : program(program), symbols(program->getParentOfType<plan::PlanModuleOp>()), table(program),
        sides(sidesOf(program, table)) {
    for (auto transfer : program.getBody().getOps<plan::TransferOp>())
      for (Value side : {transfer.getFrom(), transfer.getTo()})
        visited.insert(plan::placeOf(side).buffer);
  }

  /// Launches that were taken into another.
  int64_t run() {
    for (auto [number, op] : llvm::enumerate(table.operations)) {
      int64_t slot = number;
      if (auto launch = dyn_cast<plan::LaunchOp>(op); launch && takesInstances(launch))
        slot = place(launch, number);
      bool isStep = op->getNumRegions() == 0;
      for (const plan::BufferUse &use : plan::usesOf(op)) {
        plan::BufferOp buffer = plan::placeOf(use.value).buffer;
        // Iterations move buffers.
        history[buffer].push_back(
            {slot, plan::bytesOf(isStep ? use.value : Value(buffer.getBuffer())), use.writes});
      }
    }
    int64_t taken = 0;
    for (Batch &batch : batches) {
      taken += batch.launches.size() - 1;
      join(batch);
    }
    return taken;
  }

private:
  struct Batch {
    int64_t slot; ///< number of its first launch among the blocks
    SmallVector<plan::LaunchOp> launches;
  };
  struct Use {
    int64_t slot;
    support::ByteRange bytes;
    bool writes;
  };

  plan::KernelOp kernelOf(plan::LaunchOp launch) const {
    return symbols.lookup<plan::KernelOp>(launch.getKernelAttr().getAttr());
  }

  /// Whether the kernel is made from a group, and so for as many lists of arguments as it is asked
  /// for. A backend's own kernels take one, and so does what works on moments that come from the
  /// host and go back there, one after the other.
  bool takesInstances(plan::LaunchOp launch) {
    for (Value arg : launch.getArgs())
      if (visited.contains(plan::placeOf(arg).buffer))
        return false;
    return !kernelOf(launch).getSource();
  }

  /// The slot where a launch runs: in the latest batch of its kernel and its side, so that neither
  /// stream waits for the other, if nothing that it depends on (or that depends on it) runs there
  /// or later.
  int64_t place(plan::LaunchOp launch, int64_t number) {
    const std::pair<Attribute, int> key(launch.getKernelAttr().getAttr(),
                                        static_cast<int>(sides[number]));
    auto [known, isNew] = latest.try_emplace(key, batches.size());
    if (!isNew) {
      Batch &batch = batches[known->second];
      const size_t room = plan::kMostArguments / std::max<size_t>(1, launch.getArgs().size());
      if (batch.launches.size() < room && mayRun(launch, batch.slot)) {
        batch.launches.push_back(launch);
        return batch.slot;
      }
      known->second = batches.size();
    }
    batches.push_back({number, {launch}});
    return number;
  }

  bool mayRun(plan::LaunchOp launch, int64_t slot) {
    int64_t earlier = 0;
    for (const plan::BufferUse &use : plan::usesOf(launch)) {
      const support::ByteRange own = plan::bytesOf(use.value);
      plan::BufferOp buffer = plan::placeOf(use.value).buffer;
      const std::vector<Use> &before = history[buffer];
      for (const Use &other : before)
        if (other.slot >= slot && (other.writes || use.writes) &&
            support::overlap(other.bytes, own))
          return false;
      if (before.empty() && buffer.isTransient())
        earlier += plan::extentBytes(cast<MemRefType>(use.value.getType()));
    }
    return earlier <= kEarlierBytes;
  }

  void join(Batch &batch) {
    if (batch.launches.size() == 1)
      return;
    plan::LaunchOp first = batch.launches.front();
    SmallVector<Value> args;
    SmallVector<int64_t> access;
    int64_t flops = 0, bytes = 0;
    std::string path = pathOf(first.getLoc()).str();
    for (plan::LaunchOp launch : batch.launches) {
      llvm::append_range(args, launch.getArgs());
      llvm::append_range(access, launch.getAccess());
      flops += launch.getFlops();
      bytes += launch.getBytes();
      path = commonPath(path, pathOf(launch.getLoc()));
      // What later instances use must stand before the first launch.
      for (Value arg : launch.getArgs())
        moveBefore(arg, first);
    }
    first.getArgsMutable().assign(args);
    first.setAccess(access);
    if (DenseI64ArrayAttr each = phaseFlops(batch.launches)) {
      first.setPhaseFlopsAttr(each);
      auto most = llvm::max_element(each.asArrayRef()) - each.asArrayRef().begin();
      first->setLoc(withPhase(first.getLoc(), static_cast<Phase>(most)));
    }
    first.setFlops(flops);
    first.setBytes(bytes);
    if (path != pathOf(first.getLoc()))
      first->setLoc(withPath(first.getLoc(), path));
    for (plan::LaunchOp launch : ArrayRef(batch.launches).drop_front())
      launch.erase();
    plan::KernelOp kernel = kernelOf(first);
    int64_t instances = batch.launches.size();
    if (static_cast<int64_t>(kernel.getInstances().value_or(1)) < instances)
      kernel.setInstances(instances);
  }

  /// How many FLOPs of launches are of each phase, if they are of several.
  static DenseI64ArrayAttr phaseFlops(MutableArrayRef<plan::LaunchOp> launches) {
    SmallVector<int64_t> each(getMaxEnumValForPhase() + 1, 0);
    for (plan::LaunchOp launch : launches) {
      ScopeAttr scope = scopeOf(launch.getLoc());
      if (std::optional<ArrayRef<int64_t>> own = launch.getPhaseFlops())
        llvm::transform(llvm::zip(each, *own), each.begin(),
                        [](auto both) { return std::get<0>(both) + std::get<1>(both); });
      else
        each[static_cast<size_t>(scope ? scope.getPhase() : Phase::forward)] += launch.getFlops();
    }
    const bool several = llvm::count_if(each, [](int64_t n) { return n > 0; }) > 1;
    return several ? DenseI64ArrayAttr::get(launches.front().getContext(), each)
                   : DenseI64ArrayAttr();
  }

  plan::ProgramOp program;
  SymbolTable symbols; ///< of the module's kernels
  ProgramBlocks table; ///< of the launches before
  std::vector<Side> sides;
  DenseSet<Operation *> visited; ///< by transfers
  std::vector<Batch> batches;
  DenseMap<std::pair<Attribute, int>, size_t> latest; ///< batch, by kernel and side
  DenseMap<Operation *, std::vector<Use>> history;    ///< by buffer
};

struct BatchLaunches : impl::BatchLaunchesBase<BatchLaunches> {
  void runOnOperation() override {
    for (auto module : getOperation().getOps<plan::PlanModuleOp>())
      for (auto program : module.getBody().getOps<plan::ProgramOp>())
        batched += LaunchBatches(program).run();
  }
};

} // namespace
} // namespace hydra
