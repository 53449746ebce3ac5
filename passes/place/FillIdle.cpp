// hydra-fill-idle: steps that can wait stand where something leaves multiprocessors idle.
#include "passes/Passes.h"
#include "passes/place/ProgramBlocks.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FILLIDLE
#include "passes/Passes.h.inc"

namespace {

/// Moves steps of one program to stand in front of the blocks that they are to run beside.
class IdleTime {
public:
  explicit IdleTime(plan::ProgramOp program) : table(program), moves(table.operations.size()) {}

  /// Steps that now stand later.
  unsigned run() {
    unsigned moved = 0;
    size_t first = 0; // that no block before has been filled from
    for (size_t i = 0; i < table.operations.size(); ++i)
      if (table.idle[i] > 0) {
        moved += fill(first, i);
        first = i + 1;
      }
    return moved;
  }

private:
  /// Chooses among blocks [first, block), the nearest first: what they read is alive the longer the
  /// farther they move. Together they take the idle time at most.
  unsigned fill(size_t first, size_t block) {
    double left = table.idle[block];
    SmallVector<size_t> chosen; // from the last to the first
    for (size_t i = block; i-- > first;)
      if (const double seconds = table.end[i] - table.begin[i];
          seconds <= left && canPass(i, block)) {
        moves.set(i);
        chosen.push_back(i);
        left -= seconds;
      }
    // The last to move stands behind the others: it is needed last.
    std::reverse(chosen.begin(), chosen.end());
    const DenseMap<size_t, int64_t> needs = needsOf(chosen);
    llvm::stable_sort(chosen, [&](size_t a, size_t b) { return needs.at(a) < needs.at(b); });
    for (size_t i : chosen)
      table.operations[i]->moveBefore(table.operations[block]);
    return chosen.size();
  }

  /// Of steps that run beside a block, the first block behind it that waits for each, by itself or
  /// by others of them: the number of all where there is none.
  DenseMap<size_t, int64_t> needsOf(ArrayRef<size_t> steps) const {
    DenseMap<size_t, int64_t> needs;
    for (size_t i : llvm::reverse(steps)) {
      auto first = static_cast<int64_t>(table.operations.size());
      for (const auto &[buffer, use] : table.uses[i])
        for (const BlockUse &later : table.history.find(buffer)->second) {
          if (later.block <= static_cast<int64_t>(i) || !later.conflicts(use))
            continue;
          const auto beside = needs.find(later.block);
          first = std::min(first, beside == needs.end() ? later.block : beside->second);
        }
      needs[i] = first;
    }
    return needs;
  }

  /// Whether a step may stand behind everything up to a block that does not move, and runs beside
  /// that.
  bool canPass(size_t step, size_t block) const {
    if (!isa<plan::StepInterface>(table.operations[step]) || table.linkOf(step))
      return false;
    for (const auto &[buffer, use] : table.uses[step])
      for (const BlockUse &later : table.history.find(buffer)->second)
        if (later.block > static_cast<int64_t>(step) &&
            later.block <= static_cast<int64_t>(block) && !moves.test(later.block) &&
            later.conflicts(use))
          return false;
    return true;
  }

  ProgramBlocks table; ///< of the order before
  llvm::BitVector moves;
};

struct FillIdle : impl::FillIdleBase<FillIdle> {
  void runOnOperation() override {
    for (auto module : getOperation().getOps<plan::PlanModuleOp>())
      for (auto program : module.getBody().getOps<plan::ProgramOp>())
        moved += IdleTime(program).run();
  }
};

} // namespace
} // namespace hydra
