// What of a training program the main stream does not wait for.
#include "passes/place/Sides.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace hydra {

namespace {

/// What training changes: parameters, their moments and averages, magnitudes of earlier steps, and
/// what is made of them.
DenseSet<Operation *> trainedBuffers(plan::ProgramOp program) {
  DenseSet<Operation *> buffers;
  auto module = program->getParentOfType<plan::PlanModuleOp>();
  llvm::StringSet<> parameters;
  for (auto variable : module.getBody().getOps<plan::VariableOp>()) {
    const VariableRole role = variable.getRole();
    if (role == VariableRole::parameter)
      parameters.insert(variable.getName());
    const bool copied =
        role == VariableRole::copy && parameters.contains(variable.getOwner().value_or(""));
    if (role == VariableRole::parameter || role == VariableRole::moment ||
        role == VariableRole::average || role == VariableRole::amax_history ||
        role == VariableRole::derived || role == VariableRole::rest || copied)
      buffers.insert(plan::placeOf(variable.getBuffer()).buffer);
  }
  // Moments whose place is in the host's memory visit transient memory.
  for (auto transfer : program.getBody().getOps<plan::TransferOp>())
    for (Value side : {transfer.getFrom(), transfer.getTo()})
      buffers.insert(plan::placeOf(side).buffer);
  return buffers;
}

class SideChoice {
public:
  SideChoice(plan::ProgramOp program, const ProgramBlocks &table)
      : program(program), table(table), sides(table.operations.size(), Side::Main) {}

  std::vector<Side> run() {
    for (size_t i = 0; i < sides.size(); ++i)
      if (table.linkOf(i))
        sides[i] = Side::Links;
    if (chooseUpdates()) {
      chooseGradients();
      chooseChains();
      chooseVariables();
    }
    return std::move(sides);
  }

private:
  /// Whether there are updates. What one leaves for others, such as magnitudes of its results, is
  /// read by steps that lead to them alone.
  bool chooseUpdates() {
    bool updates = false;
    const DenseSet<Operation *> trained = trainedBuffers(program);
    llvm::BitVector leads(sides.size()); ///< to updates alone
    for (size_t i = sides.size(); i-- > 0;) {
      if (!isFree(i))
        continue;
      const auto isLead = [&](int64_t reader) { return leads.test(reader); };
      if (writesOnly(i, trained, isLead)) {
        sides[i] = Side::Updates;
        updates = true;
      }
      if (sides[i] == Side::Updates || isReadOnlyBy(i, isLead))
        leads.set(i);
    }
    return updates;
  }

  /// What updates themselves read, gradients of parameters.
  void chooseGradients() {
    SmallVector<size_t> gradients;
    for (size_t i = 0; i < sides.size(); ++i)
      if (isFree(i) && isReadOnlyByUpdates(i))
        gradients.push_back(i);
    for (size_t i : gradients)
      sides[i] = Side::Updates;
  }

  /// What those are made of, where that takes several steps. What reads is decided before what
  /// writes.
  void chooseChains() {
    double main = 0, updates = 0; // seconds of what stands behind
    for (size_t i = sides.size(); i-- > 0;) {
      const double own = table.end[i] - table.begin[i];
      if (isFree(i) && updates + own <= main && isReadOnlyByUpdates(i))
        sides[i] = Side::Updates;
      if (sides[i] == Side::Main)
        main += own;
      else if (sides[i] == Side::Updates)
        updates += own;
    }
  }

  void chooseVariables() {
    for (size_t i = 0; i < sides.size(); ++i)
      if (isFree(i) && readsOnlyVariables(i))
        sides[i] = Side::Variables;
  }

  /// Whether a block is a step that no side has yet. Loops and switches stay.
  bool isFree(size_t i) const {
    return sides[i] == Side::Main && table.operations[i]->getNumRegions() == 0;
  }

  const std::vector<BlockUse> &usesOf(plan::BufferOp buffer) const {
    return table.history.find(buffer)->second;
  }

  /// Whether a step writes into these buffers, and else only where it alone works or for steps of
  /// `isReader`.
  bool writesOnly(size_t i, const DenseSet<Operation *> &buffers,
                  function_ref<bool(int64_t)> isReader) const {
    bool writes = false;
    for (const auto &[buffer, use] : table.uses[i]) {
      const bool isOneOfThem = buffers.contains(buffer);
      if (use.writes && !isOneOfThem && !isUsedByAlone(i, buffer) &&
          !isReadOnlyBy(i, buffer, use, isReader))
        return false;
      writes |= use.writes && isOneOfThem;
    }
    return writes;
  }

  bool isUsedByAlone(size_t i, plan::BufferOp buffer) const {
    return buffer.isTransient() && llvm::all_of(usesOf(buffer), [&](const BlockUse &use) {
             return use.block == static_cast<int64_t>(i);
           });
  }

  bool isReadOnlyByUpdates(size_t i) const {
    return isReadOnlyBy(i, [&](int64_t reader) { return sides[reader] == Side::Updates; });
  }

  /// Whether something reads what a step writes, and only steps of `isReader` do.
  bool isReadOnlyBy(size_t i, function_ref<bool(int64_t)> isReader) const {
    bool read = false;
    for (const auto &[buffer, use] : table.uses[i]) {
      if (!use.writes)
        continue;
      if (!isReadOnlyBy(i, buffer, use, isReader))
        return false;
      read |= isUsedLater(i, buffer, use);
    }
    return read;
  }

  /// Whether only steps of `isReader` use bytes that a step writes, if any do.
  bool isReadOnlyBy(size_t i, plan::BufferOp buffer, const BlockUse &use,
                    function_ref<bool(int64_t)> isReader) const {
    return buffer.isTransient() && llvm::all_of(usesOf(buffer), [&](const BlockUse &later) {
             return later.block <= static_cast<int64_t>(i) || !later.overlaps(use) ||
                    isReader(later.block);
           });
  }

  bool isUsedLater(size_t i, plan::BufferOp buffer, const BlockUse &use) const {
    return llvm::any_of(usesOf(buffer), [&](const BlockUse &later) {
      return later.block > static_cast<int64_t>(i) && later.overlaps(use);
    });
  }

  /// Whether all that a step reads are variables and what steps of that side make, or constants.
  bool readsOnlyVariables(size_t i) const {
    bool reads = false;
    for (const auto &[buffer, use] : table.uses[i]) {
      const bool isPersistent = !plan::BufferOp(buffer).isTransient();
      if (use.writes ? isPersistent || !isNewTo(i, buffer)
                     : !isPersistent && !isMadeOfVariables(i, buffer, use))
        return false;
      reads |= !use.writes && !isConstant(i, buffer, use);
    }
    return reads;
  }

  /// Whether no other side has used a buffer before: else there is a history to respect.
  bool isNewTo(size_t i, plan::BufferOp buffer) const {
    return llvm::all_of(usesOf(buffer), [&](const BlockUse &other) {
      return other.block >= static_cast<int64_t>(i) || sides[other.block] == Side::Variables;
    });
  }

  bool isMadeOfVariables(size_t i, plan::BufferOp buffer, const BlockUse &use) const {
    bool written = false;
    for (const BlockUse &earlier : usesOf(buffer)) {
      if (earlier.block >= static_cast<int64_t>(i) || !earlier.writes || !earlier.overlaps(use))
        continue;
      if (sides[earlier.block] != Side::Variables && !readsNothing(earlier.block))
        return false;
      written = true;
    }
    return written; // else the batch is in it
  }

  /// Whether bytes are the same in every step of the training.
  bool isConstant(size_t i, plan::BufferOp buffer, const BlockUse &use) const {
    return plan::BufferOp(buffer).isTransient() &&
           llvm::all_of(usesOf(buffer), [&](const BlockUse &earlier) {
             return earlier.block >= static_cast<int64_t>(i) || !earlier.writes ||
                    !earlier.overlaps(use) || readsNothing(earlier.block);
           });
  }

  bool readsNothing(size_t i) const {
    return table.operations[i]->getNumRegions() == 0 &&
           llvm::all_of(table.uses[i], [](const auto &one) { return one.second.writes; });
  }

  plan::ProgramOp program;
  const ProgramBlocks &table;
  std::vector<Side> sides;
};

} // namespace

std::vector<Side> sidesOf(plan::ProgramOp program, const ProgramBlocks &table) {
  return SideChoice(program, table).run();
}

} // namespace hydra
