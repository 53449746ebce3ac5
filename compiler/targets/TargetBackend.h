// What a kind of machine does its own way: a folder beside this file implements it.
#pragma once

#include "compiler/codegen/CompiledKernels.h"
#include "compiler/codegen/files/CodeFolder.h"
#include "dialects/hydra/Target.h"
#include "dialects/plan/Plan.h"
#include "runtime/calls/FftCall.h"

#include <filesystem>
#include <string>
#include <vector>

namespace hydra {

struct Target;

namespace cpu {
class ObjectCache;
}

/// How code is made.
struct CodeOptions {
  CodeFolder cache; ///< where compiled kernels are kept
  /// For a CPU: whether LLVM improves it or writes it as it was emitted, which takes a quarter of
  /// the time to compile, several times that to run, and computes the same bits.
  bool optimised = true;
  cpu::ObjectCache *objects = nullptr; ///< of plans for CPUs compiled before; null: none
  /// Where the backend `tellsResources`: what each kernel takes, as its assembler says. The code is
  /// the same.
  bool resources = false;
  /// Nothing runs the code, so texts stand for what assemblers would make of them.
  bool onlyTexts = false;
};

class TargetBackend {
public:
  virtual ~TargetBackend() = default;

  /// As descriptions and `#hydra.target` have it.
  virtual llvm::StringRef name() const = 0;

  /// What plan files call it: which executor runs its plans.
  virtual planfile::TargetKind fileKind() const = 0;

  /// Passes of the pipeline that only some backends have a use for.
  struct Wants {
    /// hydra-add-products: matmuls add what is there to their sums in f32, at their end.
    bool addedProducts = false;
    bool fusedLoops = false; ///< hydra-fuse-loops: loops can be kernels
    /// hydra-fuse-operands: there are matmuls that compute their operand.
    bool computedOperands = false;
    /// hydra-fuse-updates: there are matmuls whose sums are used where they are made.
    bool usedSums = false;
    /// hydra-fuse-rotations: there are kernels of attention that rotate gradients.
    bool rotatedGradients = false;
    /// hydra-batch-launches: kernels take several lists of arguments; hydra-batch-copies: copies
    /// and fills are launches, and one can do several.
    bool batchedLaunches = false;
    /// Matmuls of up to so many rows have kernels of their own, which apply nothing to their sums
    /// and add to nothing: hydra-fuse-epilogues and hydra-add-products leave them alone.
    int64_t fewRows = 0;
    bool streams = false; ///< hydra-assign-streams: there is more than one
    bool tiles = false;   ///< its kernels take sizes (dialects/hydra/KernelTiles.h)
    /// hydra-quantize-weights: only rows of 16-bit floats are multiplied by weights of i8.
    bool narrowInt8Rows = false;
  };
  virtual Wants wants() const { return {}; }

  /// Whether its executor runs plans with a mesh.
  virtual bool hasCollectives() const { return false; }

  /// Why its executor has no such transform, with what it takes; empty where it has one:
  /// hydra-expand-kernels refuses the step then, at its place in the model.
  virtual std::string transformRefusal(const runtime::FftSpec &) const { return {}; }

  /// Replaces steps by launches of its own kernels: hydra-expand-kernels.
  virtual llvm::LogicalResult expandKernels(plan::PlanModuleOp, TargetAttr) const {
    return llvm::success();
  }

  /// Whether a matmul can compute its first operand as the launch in front of it does
  /// (dialects/plan/KernelExpansion.h).
  virtual bool canComputeOperand(plan::LaunchOp, plan::MatmulOp, TargetAttr) const { return false; }

  /// Whether blocks of attention over slots can compute what launches in front of it make
  /// (dialects/plan/KernelExpansion.h).
  virtual bool canComputeOperands(llvm::ArrayRef<plan::LaunchOp>, plan::CachedAttentionOp,
                                  TargetAttr) const {
    return false;
  }

  /// Whether launches can use the sums of a matmul where they are made
  /// (dialects/plan/KernelExpansion.h).
  virtual bool canUseSums(plan::MatmulOp, llvm::ArrayRef<plan::LaunchOp>, TargetAttr) const {
    return false;
  }

  /// Whether kernels of attention_grad can store gradients as launches would rotate them
  /// (dialects/plan/KernelExpansion.h).
  virtual bool canRotateGradients(plan::AttentionGradOp, llvm::ArrayRef<plan::LaunchOp>,
                                  TargetAttr) const {
    return false;
  }

  /// Whether kernels have an assembler that says what they take (KernelResources.h).
  virtual bool tellsResources() const { return false; }

  /// Compiles every `plan.kernel`. Equal input gives equal bytes. Reports what cannot be compiled.
  virtual llvm::FailureOr<CompiledKernels> compileKernels(plan::PlanModuleOp module,
                                                          const Target &target,
                                                          const CodeOptions &options) const = 0;
};

} // namespace hydra
