// The steps of a loop that becomes a kernel.
#include "compiler/codegen/cuda/LoopSteps.h"

#include "compiler/codegen/cuda/StepLauncher.h"
#include "dialects/plan/Slices.h"

using namespace mlir;

namespace hydra::cuda {

int64_t strideOf(plan::LoopOp loop, Value value) {
  auto moving = llvm::find(loop.getMoving(), value);
  return moving == loop.getMoving().end() ? 0
                                          : loop.getStrides()[moving - loop.getMoving().begin()];
}

int64_t firstElement(plan::LoopOp loop, Value value) {
  const int64_t back = -std::min<int64_t>(strideOf(loop, value), 0) * (loop.getCount() - 1);
  return back / elementBytes(typeOf(value).getElementType());
}

int64_t sliceEnd(Value value, unsigned sliced) {
  MemRefType type = typeOf(value);
  SmallVector<int64_t> strides = plan::stridesOf(type);
  int64_t extent = 1;
  for (unsigned d = sliced; d < strides.size(); ++d)
    extent += (type.getDimSize(d) - 1) * strides[d];
  return plan::placeOf(value).bytes + extent * elementBytes(type.getElementType());
}

/// The same elements in fewer dimensions: those of size 1 go, and such as follow each other without
/// a gap are one.
static void mergeDims(SmallVector<int64_t> &shape, SmallVector<int64_t> &strides) {
  SmallVector<int64_t> sizes, steps;
  for (auto [size, stride] : llvm::zip(shape, strides)) {
    if (size == 1)
      continue;
    if (!sizes.empty() && steps.back() == size * stride) {
      sizes.back() *= size;
      steps.back() = stride;
      continue;
    }
    sizes.push_back(size);
    steps.push_back(stride);
  }
  shape = sizes;
  strides = steps;
}

Value wholeOf(plan::LoopOp loop, Value value) {
  const int64_t stride = strideOf(loop, value);
  if (stride == 0)
    return value;
  MemRefType type = typeOf(value);
  const int64_t element = elementBytes(type.getElementType());
  SmallVector<int64_t> shape(type.getShape()), strides = plan::stridesOf(type);
  shape.insert(shape.begin(), loop.getCount());
  strides.insert(strides.begin(), std::abs(stride) / element);
  constexpr size_t kMostDims = 8; // of a buffer (PlanOps.td)
  if (shape.size() > kMostDims)
    mergeDims(shape, strides);
  plan::Place place = plan::placeOf(value);
  OpBuilder b(value.getContext());
  b.setInsertionPointAfter(value.getDefiningOp());
  Value whole = plan::ViewOp::create(
      b, value.getLoc(), plan::bufferType(shape, strides, type.getElementType()), place.buffer,
      b.getI64IntegerAttr(place.bytes / element - firstElement(loop, value)));
  for (auto outer = loop->getParentOfType<plan::LoopOp>(); outer;
       outer = outer->getParentOfType<plan::LoopOp>()) {
    auto moving = llvm::find(outer.getMoving(), value);
    if (moving == outer.getMoving().end())
      continue;
    SmallVector<int64_t> all(outer.getStrides());
    all.push_back(all[moving - outer.getMoving().begin()]);
    outer.getMovingMutable().append(whole);
    outer.setStrides(all);
  }
  return whole;
}

bool hasLanes(plan::LoopOp loop) {
  const std::optional<int64_t> lanes = plan::lanesOf(loop);
  return lanes && loop.getSlices() == lanes;
}

static bool moveAlike(plan::LoopOp loop, Value a, Value b) {
  for (; loop; loop = loop->getParentOfType<plan::LoopOp>())
    if (strideOf(loop, a) != strideOf(loop, b))
      return false;
  return true;
}

/// One value for all that are the same elements in every iteration.
static void nameOnce(plan::LoopOp loop, std::vector<LoopStep> &steps) {
  SmallVector<Value> known;
  for (LoopStep &step : steps)
    for (Value &arg : step.args) {
      auto *same = llvm::find_if(known, [&](Value other) {
        return plan::sameElements(other, arg) && moveAlike(loop, other, arg);
      });
      if (same != known.end())
        arg = *same;
      else
        known.push_back(arg);
    }
}

/// Whether only groups behind the copy read what it writes, and what it reads is still there then.
static bool canBeReadBehind(plan::LoopOp loop, ArrayRef<LoopStep> steps, size_t copy) {
  Value from = steps[copy].args[0], to = steps[copy].args[1];
  plan::BufferOp source = plan::placeOf(from).buffer, target = plan::placeOf(to).buffer;
  if (target->getBlock() != &loop.getBody().front() || source == target ||
      cast<MemRefType>(from.getType()).getElementType() !=
          cast<MemRefType>(to.getType()).getElementType())
    return false;
  size_t last = copy;
  for (auto [number, step] : llvm::enumerate(steps))
    for (auto [i, arg] : llvm::enumerate(step.args)) {
      if (number == copy || plan::placeOf(arg).buffer != target)
        continue;
      if (number < copy || step.writes(i) || arg != to || !step.program)
        return false;
      last = number;
    }
  for (const LoopStep &step : steps.slice(copy + 1, last - copy))
    for (auto [i, arg] : llvm::enumerate(step.args))
      if (step.writes(i) && plan::placeOf(arg).buffer == source)
        return false;
  return true;
}

static void readBehindCopies(plan::LoopOp loop, std::vector<LoopStep> &steps) {
  for (size_t copy = 0; copy < steps.size();) {
    if (!isa<plan::CopyOp>(steps[copy].op) || !canBeReadBehind(loop, steps, copy)) {
      ++copy;
      continue;
    }
    Value from = steps[copy].args[0], to = steps[copy].args[1];
    for (LoopStep &step : steps)
      llvm::replace(step.args, to, from);
    steps.erase(steps.begin() + copy);
  }
}

FailureOr<std::vector<LoopStep>> loopSteps(plan::LoopOp loop) {
  std::vector<LoopStep> steps;
  const bool lanes = hasLanes(loop);
  auto plan = loop->getParentOfType<plan::PlanModuleOp>();
  for (auto op : loop.getBody().getOps<plan::StepInterface>()) {
    LoopStep step{op, SmallVector<Value>(op->getOperands()), op.getAccesses(),
                  lanes ? SmallVector<unsigned>() : *op.slicedDimensions(*loop.getSlices()),
                  std::nullopt};
    if (auto launch = dyn_cast<plan::LaunchOp>(op.getOperation())) {
      auto kernel = plan.lookupSymbol<plan::KernelOp>(launch.getKernelAttr());
      FailureOr<RowProgram> program = recordRows(*kernel.getBody().getOps<FusedOp>().begin());
      if (failed(program))
        return failure();
      step.program = std::move(*program);
    } else if (!isa<plan::MatmulOp, plan::CopyOp>(op.getOperation())) {
      return op->emitOpError("cannot be part of a loop's kernel");
    }
    steps.push_back(std::move(step));
  }
  nameOnce(loop, steps);
  readBehindCopies(loop, steps);
  return steps;
}

} // namespace hydra::cuda
