// Picks what expands a step, and clears away what nothing uses any more.
#include "compiler/codegen/cuda/ExpandSteps.h"

#include "compiler/codegen/cuda/LaneKernels.h"
#include "compiler/codegen/cuda/LoopKernels.h"
#include "compiler/codegen/cuda/LoopSteps.h"
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"
#include "dialects/plan/KernelExpansion.h"
#include "dialects/plan/Slices.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

const char *const kTemplates =
#include "compiler/codegen/cuda/Templates.inc"
    ;

class Expander {
public:
  Expander(plan::PlanModuleOp module, TargetAttr target)
      : module(module), launcher(module, target) {}

  LogicalResult run() {
    if (failed(launcher.tiles.read(module, launcher.target)))
      return failure();
    SmallVector<plan::LoopOp> loops;
    module.walk([&](plan::LoopOp loop) {
      if (loop.getSlices())
        loops.push_back(loop);
    });
    for (plan::LoopOp loop : loops)
      if (failed(expandLoop(loop)))
        return failure();
    expandCountedSwitches(launcher, module);
    eraseUnusedKernels();
    // Fills of counters wait for all that have counters: others are put beside them.
    SmallVector<plan::StepInterface> steps, fills;
    module.walk([&](plan::StepInterface step) {
      if (!StepLauncher::fillsCounters(step))
        steps.push_back(step);
    });
    if (failed(expandAll(steps)))
      return failure();
    module.walk([&](plan::FillOp fill) { fills.push_back(fill); });
    if (failed(expandAll(fills)))
      return failure();
    eraseUnusedKernels();
    module.walk([&](plan::SwitchOp choice) { choice.setKernelAttr(setterOf(choice)); });
    eraseUnusedBuffers();
    useRowTiles();
    return launcher.tiles.checkRequired(module);
  }

private:
  /// Generated kernels take theirs when their code is made.
  void useRowTiles() {
    if (llvm::any_of(module.getBody().getOps<plan::KernelOp>(),
                     [](plan::KernelOp kernel) { return !kernel.getLaunch(); }))
      (void)launcher.tiles.of(kRowKernels);
  }

  LogicalResult expandAll(ArrayRef<plan::StepInterface> steps) {
    while (!steps.empty()) {
      const size_t count = togetherWithFirst(steps);
      // A step that computes its operands stands behind what would make them, and for all.
      launcher.begin(steps[computedInFront(steps)]);
      if (failed(expand(steps.take_front(count))))
        return failure();
      launcher.finish();
      steps = steps.drop_front(count);
    }
    return success();
  }

  /// How many steps make what the step behind them computes itself, by hydra-fuse-operands.
  static size_t computedInFront(ArrayRef<plan::StepInterface> steps) {
    size_t count = 0;
    while (steps[count]->hasAttr(plan::kComputedAttr))
      ++count;
    return count;
  }

  /// How many steps behind the first use its sums, by hydra-fuse-updates.
  static size_t usersOfSums(ArrayRef<plan::StepInterface> steps) {
    return countIn(plan::kUpdatesAttr, steps.front());
  }

  /// How many steps behind the first rotate its gradients, by hydra-fuse-rotations.
  static size_t rotationsBehind(ArrayRef<plan::StepInterface> steps) {
    return countIn(plan::kRotationsAttr, steps.front());
  }

  static size_t countIn(StringRef attribute, Operation *step) {
    auto count = step->getAttrOfType<IntegerAttr>(attribute);
    return count ? count.getInt() : 0;
  }

  /// The launches behind the first step.
  static SmallVector<plan::LaunchOp> launchesBehind(ArrayRef<plan::StepInterface> steps) {
    return llvm::map_to_vector(steps.drop_front(), [](plan::StepInterface step) {
      return cast<plan::LaunchOp>(step.getOperation());
    });
  }

  /// How many of the steps, from the first on, are one by hydra-batch-copies, hydra-fuse-operands,
  /// hydra-fuse-updates or hydra-fuse-rotations.
  static size_t togetherWithFirst(ArrayRef<plan::StepInterface> steps) {
    if (const size_t computed = computedInFront(steps))
      return computed + 1;
    if (const size_t behind = usersOfSums(steps) + rotationsBehind(steps))
      return 1 + behind;
    Operation *first = steps.front();
    Attribute batch = first->getAttr(plan::kTogetherAttr);
    size_t count = 1;
    while (batch && count < steps.size() && steps[count]->getBlock() == first->getBlock() &&
           steps[count]->getAttr(plan::kTogetherAttr) == batch)
      ++count;
    return count;
  }

  /// Launches that take the place of a step, or of several that are a batch. None for what is a
  /// launch already, and for large matmuls, which are cuBLASLt's.
  LogicalResult expand(ArrayRef<plan::StepInterface> steps) {
    if (const size_t computed = computedInFront(steps)) {
      const auto launches =
          llvm::map_to_vector(steps.take_front(computed), [](plan::StepInterface step) {
            return cast<plan::LaunchOp>(step.getOperation());
          });
      plan::StepInterface step = steps[computed];
      if (auto attention = dyn_cast<plan::CachedAttentionOp>(step.getOperation()))
        return expandCachedAttention(launcher, attention, launches);
      return expandFewRows(launcher, cast<plan::MatmulOp>(step.getOperation()), launches.front());
    }
    if (usersOfSums(steps)) {
      expandUpdate(launcher, cast<plan::MatmulOp>(steps.front()), launchesBehind(steps));
      return success();
    }
    return llvm::TypeSwitch<Operation *, LogicalResult>(steps.front())
        .Case<plan::MatmulOp>([&](auto op) {
          const FailureOr<bool> few = expandFewRows(launcher, op);
          if (succeeded(few) && !*few && isInt8(typeOf(op.getB()).getElementType()))
            return LogicalResult(op.emitOpError(
                "has a weight of i8, which kernels multiply by at most 16 rows of bf16 or f16 that "
                "lie at multiples of 16 bytes, and of whose columns there are a multiple of 16"));
          return failed(few) ? failure() : (*few || expandSmallMatmuls(launcher, op), success());
        })
        .Case<plan::AttentionOp>([&](auto op) { return expandAttention(launcher, op); })
        .Case<plan::AttentionGradOp>(
            [&](auto op) { return expandAttentionGrad(launcher, op, launchesBehind(steps)); })
        .Case<plan::CachedAttentionOp>([&](auto op) { return expandCachedAttention(launcher, op); })
        .Case<plan::SampleOp>([&](auto op) { return expandSample(launcher, op), success(); })
        .Case<plan::EmbeddingGradOp>([&](auto op) { return expandEmbeddingGrad(launcher, op); })
        .Case<plan::CompactOp>([&](auto op) { return expandCompact(launcher, op), success(); })
        .Case<plan::RouteOp>([&](auto op) { return expandRoute(launcher, op), success(); })
        .Case<plan::CountExponentsOp>(
            [&](auto op) { return expandCountExponents(launcher, op), success(); })
        .Case<plan::LinearRecurrenceOp>(
            [&](auto op) { return expandLinearRecurrence(launcher, op), success(); })
        .Case<plan::GroupedLinearOp>(
            [&](auto op) { return expandGroupedLinear(launcher, op), success(); })
        .Case<plan::GroupedOuterOp>(
            [&](auto op) { return expandGroupedOuter(launcher, op), success(); })
        .Case<plan::CopyOp, plan::FillOp>(
            [&](auto) { return expandMovements(launcher, steps), success(); })
        .Default(success());
  }

  //===-- Loops -----------------------------------------------------------------------------===//

  LogicalResult expandLoop(plan::LoopOp loop) {
    const bool lanes = hasLanes(loop);
    if (!lanes && !plan::canBeSliced(loop, *loop.getSlices()))
      return loop.emitOpError() << "has " << *loop.getSlices()
                                << " slices, into which its steps do not fall apart";
    FailureOr<LoopKernel> text = lanes ? writeLaneKernel(loop, launcher.target.getMultiprocessors())
                                       : writeLoopKernel(loop, launcher.target);
    if (failed(text))
      return failure();
    const StringRef name = lanes ? "lanes" : "loop";
    LaunchShape shape{text->blocks, text->parts, 1, text->threads, text->sharedBytes};
    shape.letsLater = lanes; // others leave multiprocessors to other streams for long
    plan::KernelOp kernel =
        launcher.kernel(loop.getLoc(), name, text->text, shape,
                        llvm::map_to_vector(text->args, [](Value v) { return v.getType(); }));
    int64_t flops = 0, bytes = 0;
    for (Operation &op : llvm::make_early_inc_range(loop.getBody().front()))
      if (isa<plan::BufferOp, plan::ViewOp>(op)) {
        op.moveBefore(loop); // it may be an argument
      } else if (auto step = dyn_cast<plan::StepInterface>(op)) {
        flops += static_cast<int64_t>(step.getFlops());
        bytes += static_cast<int64_t>(step.getBytes());
      }
    const int64_t count = loop.getCount();
    launcher.b.setInsertionPoint(loop);
    plan::LaunchOp::create(launcher.b, loop.getLoc(), kernel.getSymName(), text->args, text->access,
                           flops * count, text->bytes.value_or(bytes * count), OpClass::scan, name,
                           loop.getStream(), loop.getWaits(), loop.getSignals(), IntegerAttr(),
                           plan::SubstituteAttr(), DenseI64ArrayAttr());
    loop.erase();
    return success();
  }

  /// Kernels of which only loops, or matmuls that compute their operand, made use.
  void eraseUnusedKernels() {
    DenseSet<Attribute> used;
    module.walk([&](plan::LaunchOp launch) { used.insert(launch.getKernelAttr().getAttr()); });
    for (auto kernel : llvm::make_early_inc_range(module.getBody().getOps<plan::KernelOp>()))
      if (!used.contains(kernel.getSymNameAttr()))
        kernel.erase();
  }

  /// Working memory of what was replaced, and what a loop's kernel keeps on chip.
  void eraseUnusedBuffers() {
    SmallVector<Operation *> names;
    module.walk([&](Operation *op) {
      auto buffer = dyn_cast<plan::BufferOp>(op);
      if (isa<plan::ViewOp>(op) || (buffer && buffer.isTransient()))
        names.push_back(op);
    });
    for (Operation *op : llvm::reverse(names)) // views before what they name
      if (op->use_empty())
        op->erase();
  }

  /// The kernel that tells a graph which case a switch has.
  FlatSymbolRefAttr setterOf(plan::SwitchOp choice) {
    MLIRContext *context = module.getContext();
    auto scalar = MemRefType::get({}, launcher.b.getI32Type());
    plan::KernelOp kernel =
        launcher.kernel(choice.getLoc(), "set_switch",
                        "(unsigned long long node, const int *selector, int divisor) {\n"
                        "  setSwitch(node, selector, divisor);\n}",
                        LaunchShape(), {scalar, scalar, scalar});
    return FlatSymbolRefAttr::get(context, kernel.getSymName());
  }

  plan::PlanModuleOp module;
  StepLauncher launcher;
};

} // namespace

LogicalResult expandSteps(plan::PlanModuleOp module, TargetAttr target) {
  return Expander(module, target).run();
}

std::string templateSource(plan::PlanModuleOp module) {
  std::string instances;
  for (auto kernel : module.getBody().getOps<plan::KernelOp>())
    if (std::optional<StringRef> source = kernel.getSource())
      instances += *source;
  return instances.empty() ? "" : kTemplates + instances;
}

} // namespace hydra::cuda
