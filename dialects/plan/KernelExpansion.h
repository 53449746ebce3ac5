// What hydra-fuse-operands, hydra-fuse-updates, hydra-fuse-rotations and hydra-expand-kernels ask
// the backends of compiler/targets.
#pragma once

#include "dialects/hydra/Target.h"
#include "dialects/plan/Plan.h"

#include "runtime/support/KernelArguments.h"

#include "mlir/IR/DialectInterface.h"

namespace hydra::plan {

/// Of a launch of a kernel that a backend has written, all of its instances together.
inline constexpr size_t kMostArguments = support::kMostKernelArguments;

/// Copies and fills that stand one behind the other with the same number do not need each other,
/// and one launch may do them all: set by hydra-batch-copies.
inline constexpr llvm::StringLiteral kTogetherAttr = "plan.together";

/// The step behind a launch, a matmul, computes what the launch would make for it; or attention over
/// slots what it and launches behind it would make. A truth value: whether others read that too, so
/// that it is stored as well. Set by hydra-fuse-operands, which has seen to it that nothing is
/// written over what any of them reads.
inline constexpr llvm::StringLiteral kComputedAttr = "plan.computed";

/// On a step in the last case of a switch over a number of rows: how many rows there can be, then
/// the numbers of its operands that have these rows; of a launch none, its kernel's rows are. Set
/// by hydra-to-plan, for backends that read the number in the step itself.
inline constexpr llvm::StringLiteral kCountedAttr = "plan.counted";

/// So many launches stand right behind a matmul, alone read its result, and use its numbers where
/// they are summed: one kernel does it all, and the result is in no memory. Set by
/// hydra-fuse-updates, which has seen to it that they write over nothing that any of them still
/// reads elsewhere.
inline constexpr llvm::StringLiteral kUpdatesAttr = "plan.updates";

/// So many launches stand right behind attention_grad, each of which does nothing but rotate
/// gradients of queries, of keys or of both that it alone reads: kernels of attention_grad store
/// these where the launch would have written them, and as it would. Set by hydra-fuse-rotations,
/// which has seen to it that attention_grad and the launches touch nothing of these places.
inline constexpr llvm::StringLiteral kRotationsAttr = "plan.rotations";

/// On a launch that multiplies and moves bytes in turn: what share of the shorter of both shows
/// beside the longer. Without it the shorter is hidden.
inline constexpr llvm::StringLiteral kExposedAttr = "plan.exposed";

class KernelExpansionInterface : public mlir::DialectInterface::Base<KernelExpansionInterface> {
public:
  explicit KernelExpansionInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// Replaces calls by launches of kernels that the target's backend has, with buffers for what
  /// these work in. Reports an error for a backend that does not exist.
  virtual llvm::LogicalResult expand(PlanModuleOp module, TargetAttr target) const = 0;

  /// Whether the target's backend has a kernel for a matmul that computes its first operand as the
  /// launch in front of it does, writes what else that writes, and is expected to be faster so.
  virtual bool canComputeOperand(LaunchOp launch, MatmulOp matmul, TargetAttr target) const = 0;

  /// The same for attention over slots and launches in front of it, in their order: blocks compute
  /// all that they make, which nothing else reads.
  virtual bool canComputeOperands(llvm::ArrayRef<LaunchOp> launches, CachedAttentionOp attention,
                                  TargetAttr target) const = 0;

  /// Whether the target's backend has a kernel for a matmul whose sums launches, which alone read
  /// them, use where they are made, and is expected to be faster so.
  virtual bool canUseSums(MatmulOp matmul, llvm::ArrayRef<LaunchOp> launches,
                          TargetAttr target) const = 0;

  /// Whether the target's backend has kernels for gradients of attention that store these as
  /// launches, which alone read them, would rotate them.
  virtual bool canRotateGradients(AttentionGradOp op, llvm::ArrayRef<LaunchOp> launches,
                                  TargetAttr target) const = 0;
};

/// What was registered with the dialect; null where nothing was, which is reported.
inline const KernelExpansionInterface *kernelExpansionOf(PlanModuleOp module) {
  const auto *backends = module->getDialect()->getRegisteredInterface<KernelExpansionInterface>();
  if (!backends)
    module.emitError("has no backend that could expand kernels");
  return backends;
}

} // namespace hydra::plan
