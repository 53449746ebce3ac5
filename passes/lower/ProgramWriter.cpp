// Turns an entry into a program: inputs, operations, updates and outputs.
#include "passes/lower/ProgramWriter.h"

#include "dialects/hydra/Build.h"
#include "passes/lower/BufferCategory.h"
#include "passes/place/Layouts.h"

#include <numeric>

using namespace mlir;

namespace hydra {

ProgramWriter::ProgramWriter(PlanWriter &plan, EntryOp entry)
    : Lowering(entry.getContext()), plan(plan), entry(entry), liveness(entry) {}

LogicalResult ProgramWriter::run() {
  plan::ProgramOp program = plan.program(entry);
  b.setInsertionPointToEnd(&program.getBody().emplaceBlock());
  if (failed(addInputs()))
    return failure();
  chooseUpdateTargets();
  if (failed(lowerAll()))
    return failure();
  addOutputs();
  return success();
}

//===-- Inputs and updates --------------------------------------------------------------------===//

LogicalResult ProgramWriter::addInputs() {
  for (auto [argument, name] : llvm::zip(entry.getBody().getArguments(),
                                         entry.getArgNames().getAsValueRange<StringAttr>())) {
    RankedTensorType type = build::typeOf(argument);
    if (entry.getDefault(argument.getArgNumber())) {
      FailureOr<Value> scalar = plan.scalar(entry, argument.getArgNumber());
      if (failed(scalar))
        return failure();
      buffers[argument] = *scalar;
      continue;
    }
    Value buffer = newBuffer(type, plan::Category::other, argument.getLoc());
    int64_t bound = entry.getIds() ? (*entry.getIds())[argument.getArgNumber()] : 0;
    plan::InputOp::create(b, entry.getLoc(), b.getStringAttr(name), buffer,
                          bound > 0   ? plan::InputKind::tokens
                          : bound < 0 ? plan::InputKind::labels
                                      : plan::InputKind::values,
                          std::abs(bound),
                          batchOf(argument.getArgNumber(), &RowsAttr::getArguments));
    buffers[argument] = buffer;
  }
  return success();
}

/// The dimension of an argument or output that is the ranks' own; null where there is none.
IntegerAttr ProgramWriter::batchOf(unsigned number,
                                   ArrayRef<int64_t> (RowsAttr::*dimensions)() const) {
  std::optional<RowsAttr> rows = entry.getRows();
  if (!rows || rows->getRanks() == 1)
    return {};
  ArrayRef<int64_t> known = ((*rows).*dimensions)();
  return number < known.size() && known[number] >= 0 ? b.getI64IntegerAttr(known[number])
                                                     : IntegerAttr();
}

/// Lets the operation that makes a variable's new value write it in place, where no old value is
/// read after it.
void ProgramWriter::chooseUpdateTargets() {
  ReturnOp end = entry.getReturn();
  for (auto [symbol, value] :
       llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates())) {
    Value made = value; // in another shape
    while (auto reshape = made.getDefiningOp<ReshapeOp>()) {
      if (!reshape->hasAttr(kViewAttr))
        break;
      made = reshape.getX();
    }
    Operation *producer = made.getDefiningOp();
    if (!producer || isa<UseOp>(producer) || producer->hasAttr(kViewAttr) ||
        producer->hasAttr(kAdjacentAttr) || buffers.count(made) ||
        !liveness.canOverwriteVariable(symbol.getAttr(), cast<OpResult>(made)))
      continue;
    Value variable = plan.variable(symbol.getAttr());
    RankedTensorType type = build::typeOf(made);
    buffers[made] =
        made == value
            ? variable
            : plan::ViewOp::create(b, made.getLoc(),
                                   MemRefType::get(type.getShape(), type.getElementType()),
                                   variable, b.getI64IntegerAttr(0));
  }
}

/// Outputs, and the variables that nothing wrote in place.
void ProgramWriter::addOutputs() {
  ReturnOp end = entry.getReturn();
  // A value that lives in a variable is moved out before any variable changes.
  auto detached = [&](Value value) {
    Value buffer = source(value);
    if (plan::placeOf(buffer).buffer.isTransient())
      return buffer;
    Value apart = newBuffer(build::typeOf(value), categoryOf(value), value.getLoc());
    copy(value.getLoc(), buffer, apart);
    return apart;
  };
  SmallVector<std::pair<Value, Value>> moves;
  for (auto [symbol, value] :
       llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates())) {
    Value variable = plan.variable(symbol.getAttr());
    if (!plan::sameElements(source(value), variable))
      moves.emplace_back(detached(value), variable);
  }
  SmallVector<Value> outputs = llvm::map_to_vector(end.getOutputs(), detached);
  for (auto [from, to] : moves)
    copy(to.getLoc(), from, to);
  for (auto [i, name, buffer] :
       llvm::enumerate(end.getOutputNames().getAsRange<StringAttr>(), outputs)) {
    FlatSymbolRefAttr parameter = end.gradientOf(i);
    plan::OutputOp::create(b, end.getLoc(), name, buffer,
                           parameter ? parameter.getAttr() : StringAttr(),
                           batchOf(i, &RowsAttr::getResults));
  }
}

//===-- Buffers -------------------------------------------------------------------------------===//

Value ProgramWriter::source(Value value) {
  Value buffer = buffers.lookup(value);
  if (!buffer) { // a view: everything else was written before
    Layout layout = layoutOf(value, [&](Value root) {
      return plan::stridesOf(cast<MemRefType>(source(root).getType()));
    });
    RankedTensorType type = build::typeOf(value);
    OpBuilder::InsertionGuard guard(b);
    buffer = plan::ViewOp::create(
        b, value.getLoc(),
        plan::bufferType(type.getShape(), layout.view.strides, type.getElementType()),
        source(layout.root), b.getI64IntegerAttr(layout.view.offset));
    buffers[value] = buffer;
  }
  return buffer;
}

Value ProgramWriter::target(Value result) {
  Value &buffer = buffers[result];
  if (buffer)
    return buffer;
  if (Value part = moves.place(result))
    return buffers[result] = part;
  if (Value dying = dyingOperand(result)) {
    ++inPlace;
    return buffers[result] = inBytesOf(dying, result);
  }
  return buffers[result] = newBuffer(build::typeOf(result), categoryOf(result), result.getLoc());
}

/// The transient bytes of an operand that this operation is the last to read and may overwrite.
Value ProgramWriter::dyingOperand(Value value) {
  auto result = cast<OpResult>(value);
  auto storage = dyn_cast<StorageOpInterface>(result.getOwner());
  if (!storage)
    return {};
  for (unsigned i : storage.overwritableOperands(result.getResultNumber())) {
    Value operand = storage->getOperand(i);
    if (operand.getType() != result.getType() || isa<BlockArgument>(layoutOf(operand).root))
      continue;
    const bool isPart = !isDyingWhole(storage, i);
    if (isPart && !isDyingPart(result, i))
      continue;
    Value buffer = source(operand);
    if (!takenAt.insert({storage.getOperation(), plan::placeOf(buffer).buffer}).second)
      continue;
    if (isPart)
      liveness.join(result, layoutOf(operand).root);
    return buffer;
  }
  return {};
}

/// Whether an operation is the last to read an operand, which is all of a transient buffer.
bool ProgramWriter::isDyingWhole(Operation *op, unsigned number) {
  Value operand = op->getOperand(number);
  if (!liveness.diesAt(operand, op, number))
    return false;
  Value buffer = source(operand);
  plan::Place place = plan::placeOf(buffer);
  return place.buffer.isTransient() && buffer.getType() == cast<MemRefType>(place.buffer.getType());
}

/// Whether an operation makes one value of a single other one, and of numbers for rows or columns.
static bool isOfOne(Operation *op, Value operand) {
  const int64_t elements = build::typeOf(operand).getNumElements();
  return op->getNumResults() == 1 && llvm::count_if(op->getOperands(), [&](Value value) {
                                       return build::typeOf(value).getNumElements() >= elements;
                                     }) == 1;
}

/// Whether the operation that makes a result of an operand alone is the last to read that, which is
/// a part of something that lives as long as the result, and readers take the result where the part
/// lies. (Of several operands a result would only have rows further apart than it need have.)
bool ProgramWriter::isDyingPart(Value result, unsigned number) {
  auto storage = result.getDefiningOp<StorageOpInterface>();
  Value operand = storage->getOperand(number);
  if (!isOfOne(storage, operand) || !entry.isProgram() || isReturned(result) ||
      !liveness.partDiesAt(operand, storage, number) || !liveness.livesAsLong(operand, result))
    return false;
  Value part = source(operand);
  auto type = cast<MemRefType>(part.getType());
  plan::Place place = plan::placeOf(part);
  const SmallVector<int64_t> strides = plan::stridesOf(type);
  const OperandLayout layout = storage.resultLayout(cast<OpResult>(result).getResultNumber());
  const int64_t start = place.bytes / elementBytes(type.getElementType());
  return !isRepeated(type.getShape(), strides) && accepts(layout, type.getShape(), strides) &&
         canBeRead(result, type, start, place.buffer.getBuffer());
}

/// A result in the bytes of another value; reports tell them apart. Loops move buffers whole.
Value ProgramWriter::inBytesOf(Value dying, Value result) {
  if (!entry.isProgram())
    return dying;
  auto view = dying.getDefiningOp<plan::ViewOp>();
  if (view && view.getCategory() && view.getSource().getType() == view.getType())
    dying = view.getSource();
  return plan::ViewOp::create(b, result.getLoc(), dying.getType(), dying, b.getI64IntegerAttr(0),
                              plan::CategoryAttr::get(b.getContext(), categoryOf(result)));
}

Value ProgramWriter::scratch(Operation *op, ArrayRef<int64_t> shape, Type element) {
  return newBuffer(RankedTensorType::get(shape, element), plan::Category::workspace, op->getLoc());
}

Value ProgramWriter::newBuffer(RankedTensorType type, plan::Category category, Location loc) {
  return plan::BufferOp::create(b, loc, MemRefType::get(type.getShape(), type.getElementType()),
                                plan::Segment::transient, category, IntegerAttr());
}

bool ProgramWriter::isInPlace(Operation *move, unsigned operand) {
  return moves.contains(move, operand);
}

//===-- Operations ----------------------------------------------------------------------------===//

LogicalResult ProgramWriter::lowerAll() {
  for (Operation &op : entry.getBody().front().without_terminator())
    if (failed(runs.lower(&op, [&](Operation *each) { return lower(each); })))
      return failure();
  runs.end();
  return success();
}

LogicalResult ProgramWriter::lower(Operation *op) {
  if (auto use = dyn_cast<UseOp>(op)) {
    buffers[use.getResult()] = plan.variable(use.getVariableAttr().getAttr());
    return success();
  }
  if (auto rank = dyn_cast<RankOp>(op)) {
    if (MeshAttr::axesOf(rank.getOver()).size() > 1)
      return op->emitOpError() << "is along '" << rank.getOver()
                               << "', several axes at once; run hydra-split-gathers first";
    buffers[rank.getResult()] = plan.rank(rank.getOver());
    return success();
  }
  if (op->hasAttr(kViewAttr))
    return success(); // made when first read
  if (op->hasAttr(kAdjacentAttr)) {
    auto first = op->getOperand(0).getDefiningOp<UseOp>();
    buffers[op->getResult(0)] = plan.sideBySide(first.getVariableAttr().getAttr());
    return success();
  }
  if (auto copy = dyn_cast<CopyOp>(op); copy && !buffers.count(copy.getY()))
    if (Value alias = moves.aliasOf(copy)) {
      buffers[copy.getY()] = alias;
      return success();
    }
  if (auto group = dyn_cast<FusedOp>(op))
    return launch(group);
  if (auto loop = dyn_cast<LoopOp>(op))
    return lowerLoop(loop);
  if (auto lowering = dyn_cast<plan::PlanLoweringOpInterface>(op))
    return lowering.lowerToPlan(*this);
  return op->emitOpError("has no lowering for this target");
}

/// One launch, and for every sum over rows a second that adds the parts.
LogicalResult ProgramWriter::launch(FusedOp group) {
  SmallVector<Value> args =
      llvm::map_to_vector(group.getInputs(), [&](Value v) { return source(v); });
  size_t reads = args.size();
  RowPartition partition = partitionRows(group, plan.target);
  SmallVector<std::pair<Value, Value>> sums; // partial buffer, result
  SmallVector<Value> partials;
  for (OpResult result : group->getResults()) {
    if (!sumsOverRows(group, result.getResultNumber())) {
      args.push_back(target(result));
      continue;
    }
    int64_t columns = build::typeOf(result).getNumElements();
    Value partial = scratch(group, {partition.grains(), columns}, b.getF32Type());
    partials.push_back(partial);
    sums.emplace_back(partial, result);
  }
  llvm::append_range(args, partials);
  SmallVector<Type> layouts = llvm::map_to_vector(args, [](Value v) { return v.getType(); });
  addLaunch(group, group.getLoc(), plan.kernel(group, layouts, partition), args, reads,
            group.flops(), group.bytes());
  for (auto [partial, result] : sums) {
    Value to = target(result);
    int64_t columns = build::typeOf(result).getNumElements();
    int64_t bytes = 4 * columns * (partition.grains() + 1);
    addLaunch(group, madeInside(result).getLoc(),
              plan.combineKernel(partition.grains(), columns, {partial.getType(), to.getType()},
                                 group.getLoc()),
              {partial, to}, 1, columns * partition.grains(), bytes);
  }
  return success();
}

/// How many of a group's FLOPs are of each phase, if they are of several; null if not, or if
/// `flops` are not those of the group.
static DenseI64ArrayAttr phaseFlops(Operation *op, int64_t flops) {
  SmallVector<int64_t> each(getMaxEnumValForPhase() + 1, 0);
  op->walk([&](Operation *inner) {
    auto cost = dyn_cast<CostOpInterface>(inner);
    ScopeAttr scope = scopeOf(inner->getLoc());
    if (cost && inner != op && inner->getNumOperands() > 0)
      each[static_cast<size_t>(scope ? scope.getPhase() : Phase::forward)] += cost.flops();
  });
  const bool several = llvm::count_if(each, [](int64_t n) { return n > 0; }) > 1;
  const bool all = std::accumulate(each.begin(), each.end(), int64_t{0}) == flops;
  return several && all ? DenseI64ArrayAttr::get(op->getContext(), each) : DenseI64ArrayAttr();
}

void ProgramWriter::addLaunch(Operation *op, Location loc, plan::KernelOp kernel, ValueRange args,
                              size_t reads, int64_t flops, int64_t bytes) {
  SmallVector<int64_t> access(args.size(), plan::kWrite);
  std::fill(access.begin(), access.begin() + reads, plan::kRead);
  plan::LaunchOp::create(b, loc, kernel.getSymName(), args, access, flops, bytes, classOf(op),
                         kernel.getSymName(), 0, ArrayRef<int64_t>(), -1, IntegerAttr(),
                         plan::SubstituteAttr(), phaseFlops(op, flops));
  ++steps;
}

/// A copy that no operation of the model asks for.
void ProgramWriter::copy(Location loc, Value from, Value to) {
  plan::CopyOp::create(b, madeBy("hydra-to-plan", loc), from, to, 0, 2 * bytesOf(to.getType()),
                       OpClass::copy_cast, "copy");
  ++steps;
}

void ProgramWriter::finish(Operation *op, Operation *made) {
  auto step = cast<plan::StepInterface>(made);
  auto cost = dyn_cast<CostOpInterface>(op);
  step.setWork(cost ? cost.flops() : 0, cost ? cost.bytes() : 0);
  step.setReported(classOf(op), op->getName().stripDialect());
  ++steps;
}

} // namespace hydra
