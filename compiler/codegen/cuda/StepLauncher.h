// Launches of kernels made from templates in the place of a plan's steps.
#pragma once

#include "compiler/codegen/cuda/TileRules.h"
#include "compiler/codegen/rows/RowProgram.h"

#include "dialects/hydra/Target.h"
#include "dialects/plan/Plan.h"
#include "runtime/support/Integers.h"

#include "llvm/ADT/StringMap.h"

#include <string>

namespace hydra::cuda {

// A feature that only templates ask for.
inline constexpr llvm::StringLiteral kBulkCopies =
    "bulk_copies"; ///< a multiprocessor copies whole rows by itself (cp.async.bulk)

using support::ceilDiv;

inline mlir::MemRefType typeOf(mlir::Value buffer) {
  return mlir::cast<mlir::MemRefType>(buffer.getType());
}

/// In the templates.
llvm::StringRef cType(mlir::Type element);
/// A number as C++ text, to the last bit: a double, and a float.
std::string doubleText(double x);
std::string numberText(double x);

/// How attention makes scores of products (templates/scores.cuh); `unit`: of what scores are
/// multiples. Of a plan's operation: `op` has scale and cap.
template <typename Op> std::string scoresText(Op op, double unit = 1.0) {
  const std::string scale = numberText(op.getScale().convertToDouble() * unit);
  if (mlir::FloatAttr cap = op.getCapAttr())
    return "Capped{" + scale + ", " + numberText(cap.getValueAsDouble() * unit) + "}";
  return "Scaled{" + scale + "}";
}

/// The group of a launch, which has all of its inputs and results as arguments, in this order;
/// nothing for launches of other kernels.
std::optional<RowProgram> programOf(plan::LaunchOp launch);

/// Whether what a buffer holds was there before its program began: no step writes there, of any
/// program where they share it.
bool isNeverWritten(mlir::Value buffer);

/// Arguments of a kernel, in order.
struct Arguments {
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<std::string> types;
  llvm::SmallVector<int64_t> access;

  /// Its name in the kernel.
  std::string add(mlir::Value value, int64_t how);
};

/// How a kernel is launched.
struct LaunchShape {
  int64_t x = 1, y = 1, z = 1, threads = 1, shared = 0;
  int64_t resident = 1; ///< blocks that must fit a multiprocessor
  int64_t cluster = 1;  ///< blocks along x that read each other's shared memory
  /// Whether the next kernel is launched as soon as this one's blocks have begun. While a long one
  /// runs, blocks that wait would take multiprocessors that it leaves to other streams.
  bool letsLater = true;
};

class StepLauncher {
public:
  StepLauncher(plan::PlanModuleOp module, TargetAttr target)
      : target(target), b(module.getContext()), module(module) {}

  TargetAttr target;
  TileRules tiles;   ///< of the target
  mlir::OpBuilder b; ///< in front of the step

  /// Launches that follow stand for this step.
  void begin(plan::StepInterface step);
  /// Erases the step if anything was launched for it.
  void finish();
  /// Steps whose work the next launch does as well; `finish` erases them.
  void take(llvm::ArrayRef<plan::StepInterface> others);

  /// Whether a body waits for the kernels in front of it (templates/common.cuh), or is to be made
  /// to.
  enum class Waits { First, Itself };

  /// Adds a launch of the kernel with this body; `parameters` are the C++ types of the arguments.
  void launch(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> parameters,
              llvm::StringRef body, const LaunchShape &shape, llvm::ArrayRef<mlir::Value> args,
              llvm::ArrayRef<int64_t> access, Waits waits = Waits::First);

  /// The work that reports count for the next launch; that of the whole step if never said.
  /// Launches behind the next count for nothing.
  void setWork(int64_t flops, int64_t bytes);
  int64_t flops() const { return stepFlops; } ///< of the step
  int64_t bytes() const { return stepBytes; }

  /// `count` counters (i32) of the step's program, zero when it begins. Steps that take them as an
  /// operand that they update have to leave them zero.
  mlir::Value zeroCounters(int64_t count);
  /// The same, for this step alone: steps that share none may run at the same time.
  mlir::Value ownCounters(int64_t count);
  /// Whether a step is there to make counters zero.
  static bool fillsCounters(mlir::Operation *step);

  /// Memory of this step alone.
  mlir::Value workspace(llvm::ArrayRef<int64_t> shape, mlir::Type element);

  plan::LaunchOp last; ///< of the step; null: none

  /// The kernel with this text, `(…) {…}`, behind its name and these types of arguments; equal ones
  /// are the same.
  plan::KernelOp kernel(mlir::Location loc, llvm::StringRef name, llvm::StringRef text,
                        const LaunchShape &shape, llvm::ArrayRef<mlir::Type> layouts,
                        Waits waits = Waits::First);

private:
  /// New counters of a program, zero when it begins.
  mlir::Value createCounters(plan::ProgramOp program, int64_t count);

  plan::PlanModuleOp module;
  plan::StepInterface step;
  llvm::SmallVector<plan::StepInterface> taken; ///< with it
  llvm::StringMap<plan::KernelOp> kernels;      ///< by text and shape
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, mlir::Value> counters; ///< of programs
  /// Of counters, that a program begins with.
  struct Fills {
    plan::FillOp first;
    int64_t count = 0;
  };
  llvm::DenseMap<mlir::Operation *, Fills> fills;
  int64_t stepFlops = 0, stepBytes = 0, remainingFlops = 0, remainingBytes = 0;
};

/// Attention and its gradients (templates/attention*.cuh).
/// They fail, with the place, for tiles that no kernel has. `rotations`: launches right behind it,
/// for which `canRotateGradients` holds.
llvm::LogicalResult expandAttention(StepLauncher &launcher, plan::AttentionOp op);
llvm::LogicalResult expandAttentionGrad(StepLauncher &launcher, plan::AttentionGradOp op,
                                        llvm::ArrayRef<plan::LaunchOp> rotations);

/// Attention over slots (templates/cached_attention*.cuh); with `launches`, which make queries or
/// keys and for which `canComputeOperands` holds, blocks compute those themselves.
/// Fails, with the place, where it does not.
llvm::LogicalResult expandCachedAttention(StepLauncher &launcher, plan::CachedAttentionOp op,
                                          llvm::ArrayRef<plan::LaunchOp> launches = {});

/// Ids drawn from scores (templates/sample.cuh).
void expandSample(StepLauncher &launcher, plan::SampleOp op);

/// A matmul of few rows as a sweep over weights (templates/few_rows*.cuh); with `rows`, the launch
/// that makes its operand, for which `canComputeOperand` holds, it computes them itself. False
/// where it is none: the library's then. Fails, with the place, for tiles that no kernel has.
llvm::FailureOr<bool> expandFewRows(StepLauncher &launcher, plan::MatmulOp op,
                                    plan::LaunchOp rows = {});

/// A matmul whose sums `launches` use (templates/update_hopper.cuh); `canUseSums` holds for them.
void expandUpdate(StepLauncher &launcher, plan::MatmulOp op,
                  llvm::ArrayRef<plan::LaunchOp> launches);

/// Matmuls of small matrices in one launch: of 16 bits, for which the library would have to be
/// called several times (templates/small_matmuls.cuh), and of f32 that memory bounds
/// (templates/small_floats.cuh). False where they are none: the library's then.
bool expandSmallMatmuls(StepLauncher &launcher, plan::MatmulOp op);

/// What moves elements (templates/movement.cuh, routing.cuh). Fails, with the place, for rows that
/// no template reaches.
/// Copies and fills that do not need each other, in one launch.
void expandMovements(StepLauncher &launcher, llvm::ArrayRef<plan::StepInterface> steps);
void expandCompact(StepLauncher &launcher, plan::CompactOp op);
llvm::LogicalResult expandEmbeddingGrad(StepLauncher &launcher, plan::EmbeddingGradOp op);

/// Counts of exponents (templates/counting.cuh), many tensors in a launch.
void expandCountExponents(StepLauncher &launcher, plan::CountExponentsOp op);

/// Linear recurrences along rows (templates/recurrence.cuh).
void expandLinearRecurrence(StepLauncher &launcher, plan::LinearRecurrenceOp op);

/// Rows in groups (templates/routing.cuh, grouped.cuh, matmul_hopper.cuh).
void expandRoute(StepLauncher &launcher, plan::RouteOp op);
void expandGroupedLinear(StepLauncher &launcher, plan::GroupedLinearOp op);
void expandGroupedOuter(StepLauncher &launcher, plan::GroupedOuterOp op);

/// Matmuls of rows that the device counts (templates/matmul_hopper.cuh), of which kCountedAttr
/// tells: whether there is one, and its launch. `count`: an i32, how many rows there are.
bool canCountRows(plan::MatmulOp op, TargetAttr target);
void expandCountedMatmul(StepLauncher &launcher, plan::MatmulOp op, mlir::Value count);

/// A matmul aT b that is added to others, over all of its rows or as many as `count` says.
struct CountedTerm {
  plan::MatmulOp matmul;
  mlir::Value count; ///< an i32; null: all
};
/// Whether one launch can be the sum of such matmuls, of which all but the first are added to what
/// is there, and that launch.
bool canAddUp(llvm::ArrayRef<CountedTerm> terms, TargetAttr target);
void expandCountedSum(StepLauncher &launcher, llvm::ArrayRef<CountedTerm> terms);

/// A switch over a number of rows costs a graph the time to set a node and to start its case, and
/// works on whole granules. Where every step of all switches over a number can read it by itself,
/// these steps take their places: generated kernels whose blocks behind the last row end at once,
/// and matmuls by warpgroups. They count for half of the work on all rows.
void expandCountedSwitches(StepLauncher &launcher, plan::PlanModuleOp module);

} // namespace hydra::cuda
