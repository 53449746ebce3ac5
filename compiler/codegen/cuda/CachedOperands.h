// Queries and keys that attention over slots computes for itself, as launches in front of it would:
// a block those of its heads (hydra-fuse-operands).
#pragma once

#include "compiler/codegen/cuda/GroupText.h"
#include "compiler/codegen/cuda/StepLauncher.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace hydra::cuda {

/// A launch in front of attention, as a block does its part: its rows are heads.
struct HeadGroup {
  plan::LaunchOp launch;
  RowProgram program;                         ///< rows [batch, calls, heads]
  llvm::SmallVector<mlir::MemRefType> inputs; ///< as this domain has them
  llvm::SmallVector<mlir::MemRefType> results;
};

/// What of a group leads to an operand.
struct GroupPart {
  unsigned group;
  RowProgram program;                  ///< of these results alone
  llvm::SmallVector<unsigned> results; ///< by their numbers in the group
};

/// What a block computes of queries or of keys.
struct ComputedOperand {
  std::vector<GroupPart> groups; ///< in their order
  llvm::DenseMap<mlir::Value, int64_t>
      parts;             ///< results of theirs, and the columns where they begin
  int64_t firstHead = 0; ///< of the groups' heads the operand's first
};

/// All that blocks compute.
struct ComputedOperands {
  std::vector<HeadGroup> groups;
  std::optional<ComputedOperand> q, k; ///< none: it lies in memory

  /// The threads that compute one of them: half of a block's where the other half has the other.
  Team teamOf(const std::optional<ComputedOperand> &operand) const {
    return q && k ? (&operand == &q ? Team{128, 0, 1} : Team{128, 128, 2}) : Team{};
  }
};

/// How launches make queries and keys of attention, all of which they serve; nothing where blocks
/// cannot do that in less time than launches take.
std::optional<ComputedOperands> computedOperands(plan::CachedAttentionOp op,
                                                 llvm::ArrayRef<plan::LaunchOp> launches);

/// Numbers of queries or of keys that belong to a block.
int64_t blockNumbers(plan::CachedAttentionOp op, mlir::Value operand);

/// The bytes of shared memory in which a block keeps an operand, and what lies between groups.
int64_t sharedBytesOf(const ComputedOperands &all, const ComputedOperand &operand,
                      plan::CachedAttentionOp op, mlir::Value value);

/// The text that computes an operand, by a team: `name` [calls × heads of a block, width], in
/// shared memory. What lies between two groups has memory of its own.
std::string computedText(const ComputedOperands &all, const ComputedOperand &operand,
                         const Team &team, plan::CachedAttentionOp op, mlir::Value value,
                         llvm::StringRef name, Arguments &arguments);

} // namespace hydra::cuda
