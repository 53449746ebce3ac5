// Loops of a model become loops of a plan, which move views of whole buffers.
#include "passes/lower/ProgramWriter.h"

#include "dialects/hydra/Build.h"
#include "passes/place/Layouts.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hydra {

/// Lets a loop move buffers, and all views of them that are used inside.
static void moveWithLoop(plan::LoopOp loop, DenseMap<Value, int64_t> &moved) {
  loop->walk([&](plan::ViewOp view) {
    auto from = moved.find(view.getSource());
    if (from == moved.end())
      return;
    const int64_t bytes = from->second;
    view->moveBefore(loop);
    moved[view] = bytes;
  });
  DenseSet<Value> used;
  loop->walk([&](Operation *step) { used.insert(step->operand_begin(), step->operand_end()); });
  SmallVector<Value> moving;
  SmallVector<int64_t> strides;
  for (Operation &op : *loop->getBlock())
    if (auto view = dyn_cast<plan::ViewOp>(op); view && moved.count(view) && used.contains(view)) {
      moving.push_back(view);
      strides.push_back(moved.lookup(view));
    }
  loop.getMovingMutable().assign(moving);
  loop.setStrides(strides);
}

/// The elements of stacks that a path goes through: `layers.3` of `layers.3.mixer.scan`.
static StringRef stackElement(StringRef path) {
  size_t end = 0;
  for (size_t begin = 0; begin < path.size();) {
    const size_t next = std::min(path.find('.', begin), path.size());
    if (llvm::all_of(path.slice(begin, next), llvm::isDigit))
      end = next;
    begin = next + 1;
  }
  return path.take_front(end);
}

/// Loops share bodies, but each is in an element of a stack, and one of the backward pass repeats
/// what its body has of the forward pass.
static void placeSteps(plan::LoopOp planned, LoopOp loop) {
  ScopeAttr scope = scopeOf(loop.getLoc());
  if (!scope)
    return;
  StringRef element = stackElement(scope.getPath());
  planned.getBody().walk([&](Operation *op) {
    ScopeAttr own = scopeOf(op->getLoc());
    op->setLoc(withPath(op->getLoc(), joinPaths(element, own ? own.getPath() : "")));
    if (!own || own.getPhase() < scope.getPhase())
      op->setLoc(withPhase(op->getLoc(), scope.getPhase()));
  });
}

LogicalResult ProgramWriter::lowerLoop(LoopOp loop) {
  EntryOp body = loop.getEntry();
  ScanAttr scan = loop.getScan();
  const size_t over = scan.getOver().size(), stacked = scan.getStacked().size();
  LoopBuffers given;
  DenseMap<Value, int64_t> moved; // by how many bytes
  auto chunkOf = [&](Value whole, RankedTensorType chunk, int64_t axis) {
    SmallVector<int64_t> strides = plan::stridesOf(cast<MemRefType>(whole.getType()));
    const int64_t step = chunk.getDimSize(axis) * strides[axis];
    const int64_t start = scan.getReverse() ? (scan.getCount() - 1) * step : 0;
    Value view = plan::ViewOp::create(
        b, loop.getLoc(), plan::bufferType(chunk.getShape(), strides, chunk.getElementType()),
        whole, b.getI64IntegerAttr(start));
    const int64_t bytes = step * elementBytes(chunk.getElementType());
    moved[view] = scan.getReverse() ? -bytes : bytes;
    return view;
  };
  for (unsigned i = 0; i < loop.getInputs().size(); ++i) {
    Value input = loop.getInputs()[i];
    BlockArgument argument = body.getBody().getArgument(i);
    if (i < over)
      given.arguments.push_back(chunkOf(source(input), build::typeOf(argument), scan.getOver()[i]));
    else if (i < over + scan.getCarried())
      given.arguments.push_back(carriedBuffer(loop, i, loop.getResult(stacked + i - over)));
    else
      given.arguments.push_back(source(input));
  }
  for (unsigned i = 0; i < stacked; ++i)
    given.joined.push_back(chunkOf(target(loop.getResult(i)),
                                   build::typeOf(body.getReturn().getOutputs()[i]),
                                   scan.getStacked()[i]));
  llvm::append_range(given.carried, ArrayRef(given.arguments).slice(over, scan.getCarried()));

  auto planned =
      plan::LoopOp::create(b, loop.getLoc(), scan.getCount(), ValueRange(), ArrayRef<int64_t>(), 0,
                           ArrayRef<int64_t>(), -1, IntegerAttr());
  ProgramWriter inner(plan, body);
  if (failed(inner.runBody(planned.getBody().emplaceBlock(), given)))
    return failure();
  steps += inner.steps;
  inPlace += inner.inPlace;
  placeSteps(planned, loop);
  moveWithLoop(planned, moved);
  // A body that only hands on what it is given has no steps.
  if (llvm::none_of(planned.getBody().front(),
                    [](Operation &op) { return isa<plan::BlockInterface>(op); }))
    planned.erase();
  return success();
}

/// The buffer in which a value is carried: that of the initial value if nobody reads it later,
/// else one that starts as a copy of it.
Value ProgramWriter::carriedBuffer(LoopOp loop, unsigned number, Value result) {
  Value init = loop.getInputs()[number];
  Value start = source(init);
  Value &buffer = buffers[result];
  plan::Place place = plan::placeOf(start);
  if (!buffer && liveness.diesAt(init, loop, number) && !isa<BlockArgument>(layoutOf(init).root) &&
      place.buffer.isTransient() && start.getType() == place.buffer.getType() &&
      takenAt.insert({loop.getOperation(), place.buffer}).second)
    return buffer = start;
  Value own = target(result);
  copy(loop.getLoc(), start, own);
  return own;
}

/// Writes one iteration at the end of a block.
LogicalResult ProgramWriter::runBody(Block &block, const LoopBuffers &given) {
  b.setInsertionPointToEnd(&block);
  ReturnOp end = entry.getReturn();
  for (auto [argument, buffer] : llvm::zip(entry.getBody().getArguments(), given.arguments))
    buffers[argument] = buffer;
  auto joined = end.getOutputs().take_front(given.joined.size());
  auto carried = end.getOutputs().drop_front(given.joined.size());
  SmallVector<bool> inPlaceJoined;
  for (auto [value, slot] : llvm::zip(joined, given.joined)) {
    bool passed = isa<BlockArgument>(layoutOf(value).root);
    if (passed)
      copy(value.getLoc(), source(value), slot);
    inPlaceJoined.push_back(passed || writeInto(value, slot));
  }
  ValueRange starts =
      entry.getBody().getArguments().slice(entry.getScan()->getOver().size(), given.carried.size());
  for (auto [value, start, buffer] : llvm::zip(carried, starts, given.carried))
    if (auto result = dyn_cast<OpResult>(value); result && !result.getOwner()->hasAttr(kViewAttr) &&
                                                 !buffers.count(value) &&
                                                 liveness.canOverwrite(start, result))
      buffers[value] = buffer;
  if (failed(lowerAll()))
    return failure();
  for (auto [value, slot, done] : llvm::zip(joined, given.joined, inPlaceJoined))
    if (!done)
      copy(value.getLoc(), source(value), slot);
  // All are read before any is written.
  SmallVector<std::pair<Value, Value>> moves;
  for (auto [value, buffer] : llvm::zip(carried, given.carried)) {
    Value from = source(value);
    if (plan::sameElements(from, buffer))
      continue;
    bool lies = llvm::any_of(given.carried, [&](Value other) {
      return plan::placeOf(other).buffer == plan::placeOf(from).buffer;
    });
    if (lies) {
      Value apart = newBuffer(build::typeOf(value), Category::act_state, value.getLoc());
      copy(value.getLoc(), from, apart);
      from = apart;
    }
    moves.emplace_back(from, buffer);
  }
  for (auto [from, to] : moves)
    copy(end.getLoc(), from, to);
  return success();
}

/// Lets the operation that makes a value write it to a slot, if its result can lie like that and
/// all that reads it in the body can read it there.
bool ProgramWriter::writeInto(Value value, Value slot) {
  Value made = value;
  while (Operation *op = made.getDefiningOp()) {
    if (!op->hasAttr(kViewAttr))
      break;
    if (!isa<ReshapeOp>(op))
      return false;
    made = op->getOperand(0);
  }
  auto storage = dyn_cast_or_null<StorageOpInterface>(made.getDefiningOp());
  if (!storage || isa<UseOp>(storage) || storage->hasAttr(kAdjacentAttr) || buffers.count(made))
    return false;
  RankedTensorType type = build::typeOf(made);
  FailureOr<SmallVector<int64_t>> strides = reshapedStrides(
      build::shapeOf(value), plan::stridesOf(cast<MemRefType>(slot.getType())), type.getShape());
  if (failed(strides) ||
      !accepts(storage.resultLayout(cast<OpResult>(made).getResultNumber()), type.getShape(),
               *strides) ||
      !readersAccept(made, *strides))
    return false;
  buffers[made] = plan::ViewOp::create(
      b, made.getLoc(), plan::bufferType(type.getShape(), *strides, type.getElementType()), slot,
      b.getI64IntegerAttr(0));
  return true;
}

} // namespace hydra
