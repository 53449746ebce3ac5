// How each operation is written for one rank, and what ranks exchange where a value is needed in
// another form.
#include "passes/partition/RankWriter.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowLoss.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

/// What it makes says so, for reports.
static constexpr StringLiteral kPass = "hydra-partition";

Spread PartitionAxis::spreadOf(Operation *variable) const {
  if (ranks == 1)
    return Spread::same();
  if (auto state = dyn_cast<StateOp>(variable); state && state.isPart())
    return Spread::part();
  FlatUnitAttr unit = unitOf(variable);
  return unit ? rowsOver(unit.getOver()) : Spread::same();
}

Spread PartitionAxis::rowsOver(StringRef over) const {
  Spread rows = Spread::rows(0);
  for (StringRef each : MeshAttr::axesOf(over)) {
    if (each == name.getValue())
      return rows;
    if (mesh.stride(each) < mesh.stride(name))
      rows.blocks *= mesh.size(each);
  }
  return Spread::same();
}

RankedTensorType localType(Type type, const Spread &spread, int64_t ranks) {
  auto tensor = cast<RankedTensorType>(type);
  if (!spread.isRows())
    return tensor;
  SmallVector<int64_t> shape(tensor.getShape());
  shape[spread.dim] /= ranks;
  return tensor.clone(shape);
}

static StringRef describe(const Spread &spread) {
  return spread.isSame()   ? "the whole"
         : spread.isRows() ? "rows"
         : spread.isOwn()  ? "of the order of each rank's rows"
                           : "a part of a sum";
}

LogicalResult RankWriter::write(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(write(op)))
      return failure();
  return success();
}

Value RankWriter::as(Value old, const Spread &want, Operation *user) {
  const Placed from = placed.lookup(old);
  if (from.spread == want)
    return from.value;
  auto &known = converted[old];
  for (auto &[spread, value] : known)
    if (spread == want)
      return value;
  Value value = convert(old, from, want, user);
  converted[old].push_back({want, value});
  return value;
}

LogicalResult RankWriter::fail(Operation *op, const Twine &text) {
  if (!problem.op)
    problem = {op, text.str()};
  return failure();
}

static SmallVector<OpOperand *> readersOf(Value value) {
  return llvm::map_to_vector(value.getUses(), [](OpOperand &use) { return &use; });
}

//===-- Numbers of rows -------------------------------------------------------------------===//

/// The numbers of gathered rows, and of their places, that an operation yields.
static SmallVector<Value> rowNumbersOf(Operation *op) {
  if (auto compact = dyn_cast<CompactOp>(op))
    return {compact.getIndex(), compact.getPlace()};
  if (auto route = dyn_cast<RouteOp>(op))
    return {route.getIndex(), route.getPlace()};
  return {};
}

/// Whether a comparison asks no more of its first operand than whether it is negative.
static bool asksForSign(CompareOp compare) {
  const std::optional<double> bound = build::constantValue(compare.getB());
  const StringRef is = compare.getIs();
  return (bound == 0.0 && (is == "lt" || is == "ge")) ||
         (bound == -1.0 && (is == "le" || is == "gt" || is == "eq" || is == "ne"));
}

/// An operation that reads numbers of rows, or what moves and selections make of them, as numbers;
/// null if none does. To take rows by them, and to ask which there are, is something else.
static Operation *readerOfNumbers(Value numbers) {
  SmallVector<OpOperand *> work = readersOf(numbers);
  while (!work.empty()) {
    OpOperand *use = work.pop_back_val();
    Operation *op = use->getOwner();
    auto compare = dyn_cast<CompareOp>(op);
    auto precision = dyn_cast<PrecisionOpInterface>(op);
    const bool isReturned = isa<ReturnOp>(op) && op->getParentOfType<EntryOp>().isProgram();
    if (isa<TakeRowsOp>(op) || isReturned || // which says by itself what it cannot join
        (compare && use->getOperandNumber() == 0 && asksForSign(compare)))
      continue;
    if (auto loop = dyn_cast<LoopOp>(op))
      llvm::append_range(work,
                         readersOf(loop.getEntry().getBody().getArgument(use->getOperandNumber())));
    else if (isa<SelectOp>(op) || (precision && precision.precisionClass() == Precision::Move))
      llvm::append_range(work, readersOf(op->getResult(0)));
    else
      return op;
  }
  return nullptr;
}

LogicalResult RankWriter::checkNumbers(Operation *op) {
  for (Value numbers : rowNumbersOf(op))
    if (Operation *reader = readerOfNumbers(numbers))
      return fail(reader, "reads numbers of rows that " + op->getName().getStringRef() +
                              " has gathered, of which each rank numbers its own; expected "
                              "hydra.take_rows alone");
  return success();
}

//===-- Operations ------------------------------------------------------------------------===//

LogicalResult RankWriter::write(Operation &op) {
  if (auto loop = dyn_cast<LoopOp>(op))
    return write(loop);
  if (auto use = dyn_cast<UseOp>(op))
    return write(use);
  if (auto shard = dyn_cast<ShardOp>(op); shard && shard.getOverAttr() == axis.name)
    return write(shard);
  SmallVector<Spread> in =
      llvm::map_to_vector(op.getOperands(), [&](Value v) { return spreadOf(v); });
  SmallVector<Spread> out(op.getNumResults());
  auto rule = dyn_cast<PartitionOpInterface>(op);
  // What is the same behind a sum, or rows of it, is best added up before it is repeated.
  if (isa<BroadcastOp>(op) && !body && in[0].isPart() &&
      !isSummedSmall(op.getResult(0), build::typeOf(op.getOperand(0)).getNumElements()))
    in[0] = Spread::same();
  // What is cut is gathered as it lies, whatever is read out of it; what another axis has cut too
  // is gathered over that one first.
  const bool readsOut = isa<ReshapeOp>(op) && op.getOperand(0).getDefiningOp<UseOp>() &&
                        llvm::none_of(op.getUsers(), llvm::IsaPred<CollectiveOpInterface>);
  if (readsOut && in[0].isRows())
    in[0] = Spread::same();
  bool isWhole = false; // of a part that is added up for others as well
  for (auto [old, spread] : llvm::zip(op.getOperands(), in))
    if (spread.isPart() && !body && isSummedOften(old)) {
      spread = Spread::same();
      isWhole = true;
    }
  auto add = dyn_cast<AddOp>(op);
  const bool updatesPart = add && isUpdateOfPart(add);
  if (updatesPart) // what each rank adds to its part is added up with it, later
    in[0] = in[1] = out[0] = Spread::part();
  else if (rule)
    rule.partition(axis.ranks, in, out);
  else if (!llvm::all_of(in, [](const Spread &s) { return s.isSame(); }))
    return fail(&op, "has no rule for a part of the batch (the partition interface)");
  if (!out.empty() && out[0].order && failed(checkNumbers(&op)))
    return failure();
  if (add && !body && !updatesPart && !isWhole && startsSum(add))
    return success();
  SmallVector<Value> operands;
  for (auto [old, spread] : llvm::zip(op.getOperands(), in))
    operands.push_back(as(old, spread, &op));
  Operation *fresh = copy(&op, operands, out);
  if (failed(countLabels(&op, in, fresh)))
    return failure();
  for (auto [old, value, spread] : llvm::zip(op.getResults(), fresh->getResults(), out)) {
    Value scaled = value;
    if (spread.factor != 1.0)
      scaled = build::scale(b, madeBy(kPass, op.getLoc()), value, spread.factor);
    spread.factor = 1.0; // or what is computed from it would be scaled again
    place(old, scaled, spread);
  }
  return success();
}

LogicalResult RankWriter::write(UseOp use) {
  const Spread spread = axis.spreadOf(use.lookup());
  place(use.getValue(), copy(use, {}, spread)->getResult(0), spread);
  return success();
}

LogicalResult RankWriter::write(ShardOp shard) {
  const Placed x = placed.lookup(shard.getX());
  auto add = shard->hasOneUse() ? dyn_cast<AddOp>(*shard->user_begin()) : AddOp();
  const bool isAdded = x.spread.isPart() && add && llvm::any_of(add->getOperands(), [](Value v) {
                         return v.getDefiningOp<UseOp>();
                       });
  const Spread spread = isAdded ? Spread::part() : rowsOf(shard);
  place(shard.getY(), isAdded ? x.value : as(shard.getX(), spread, shard), spread);
  return success();
}

Spread RankWriter::rowsOf(ShardOp shard) const {
  Spread rows = Spread::rows(0);
  while ((shard = shard.getX().getDefiningOp<ShardOp>()))
    rows.blocks *= axis.mesh.size(shard.getOver());
  return rows;
}

bool RankWriter::isSummedSmall(Value part, int64_t most) {
  return isSummedSmall(part, readersOf(part), most, /*unknownAreParts=*/false);
}

bool RankWriter::isSummedSmall(Value part, SmallVector<OpOperand *> work, int64_t most,
                               bool unknownAreParts) {
  DenseSet<Value> seen{part};
  while (!work.empty()) {
    OpOperand &use = *work.pop_back_val();
    Operation *op = use.getOwner();
    if (isa<ReturnOp, ShardOp>(op))
      continue;
    Spread taken = Spread::same();
    bool linear = false;
    // What is not written yet may be a part as well.
    for (const bool unknown : {false, true}) {
      auto rule = dyn_cast<PartitionOpInterface>(op);
      if (!rule || linear || (unknown && !unknownAreParts))
        break;
      SmallVector<Spread> in = llvm::map_to_vector(op->getOperands(), [&](Value v) {
        const bool isPart = seen.contains(v) || (unknown && !placed.contains(v));
        return isPart ? Spread::part() : spreadOf(v);
      });
      SmallVector<Spread> out(op->getNumResults());
      rule.partition(axis.ranks, in, out);
      taken = in[use.getOperandNumber()];
      linear = taken.isPart() && llvm::all_of(out, [](const Spread &s) { return s.isPart(); });
    }
    if (!linear && (taken.isRows() || build::typeOf(use.get()).getNumElements() > most))
      return false;
    if (!linear)
      continue;
    for (Value result : op->getResults())
      if (seen.insert(result).second)
        llvm::append_range(work, readersOf(result));
  }
  return true;
}

bool RankWriter::isSummedOften(Value part) {
  if (part.hasOneUse() || !summedOften.try_emplace(part, false).second)
    return summedOften.lookup(part);
  const int64_t less = build::typeOf(part).getNumElements() - 1;
  const auto needsAll = [&](OpOperand *use) {
    const ScopeAttr scope = scopeOf(use->getOwner()->getLoc());
    return scope && (scope.getPhase() == Phase::clip || scope.getPhase() == Phase::optimizer) &&
           !isSummedSmall(part, {use}, less, /*unknownAreParts=*/true);
  };
  return summedOften[part] = llvm::count_if(readersOf(part), needsAll) > 1;
}

Operation *RankWriter::copy(Operation *op, ValueRange operands, ArrayRef<Spread> results) {
  Operation *fresh = op->clone();
  fresh->setOperands(operands);
  for (auto [result, spread] : llvm::zip(fresh->getResults(), results))
    result.setType(localType(result.getType(), spread, axis.ranks));
  if (auto rule = dyn_cast<PartitionOpInterface>(fresh); rule && fresh->getNumResults() == 1)
    rule.takeShape(build::shapeOf(fresh->getResult(0)));
  return b.insert(fresh);
}

bool RankWriter::startsSum(AddOp add) {
  Spread first = spreadOf(add.getA()), second = spreadOf(add.getB());
  if (first.isRows() && !first.order && second.isPart() && add.getA().getDefiningOp<UseOp>()) {
    const int64_t size = build::shapeOf(add.getY())[first.dim];
    Value part = apart(placed.lookup(add.getB()).value, first, size);
    Value start = apart(placed.lookup(add.getA()).value, first, size / axis.ranks);
    Value sum = ReduceScatterOp::create(b, madeBy(kPass, add.getLoc()), part, start, axisOf(first),
                                        axis.name, ranksAttr(), TypeAttr());
    ++axis.reductions;
    place(add.getY(), merged(sum, add.getY(), first), first);
    return true;
  }
  if (!(first.isSame() && second.isPart()) && !(first.isPart() && second.isSame()))
    return false;
  Value start = first.isSame() ? add.getA() : add.getB();
  Value part = first.isSame() ? add.getB() : add.getA();
  if (build::constantValue(placed.lookup(start).value) == 0.0)
    return false;
  Value sum = AllReduceOp::create(b, madeBy(kPass, add.getLoc()), placed.lookup(part).value,
                                  placed.lookup(start).value, axis.name, ranksAttr(), TypeAttr());
  ++axis.reductions;
  place(add.getY(), sum, Spread::same());
  return true;
}

bool RankWriter::isUpdateOfPart(AddOp add) {
  auto model = add->getParentOfType<ModelOp>();
  return llvm::any_of(add->getUses(), [&](OpOperand &use) {
    auto end = dyn_cast<ReturnOp>(use.getOwner());
    const int64_t number =
        end ? static_cast<int64_t>(use.getOperandNumber() - end.getOutputs().size()) : -1;
    if (number < 0)
      return false;
    auto symbol = cast<FlatSymbolRefAttr>(end.getUpdated()[number]);
    auto state = dyn_cast<StateOp>(model.lookupSymbol(symbol.getAttr()));
    return state && state.isPart();
  });
}

LogicalResult RankWriter::countLabels(Operation *old, ArrayRef<Spread> in, Operation *fresh) {
  auto loss = dyn_cast<CountedLossOpInterface>(old);
  if (!loss || loss.getCount() || llvm::none_of(in, [](const Spread &s) { return s.isRows(); }))
    return success();
  if (body)
    return fail(old, "counts the labels of all ranks in a loop");
  Value &divisor = counts[loss.getLabels()];
  if (!divisor) {
    OpBuilder::InsertionGuard here(b);
    b.setInsertionPoint(fresh);
    Location loc = old->getLoc();
    const Placed labels = placed.lookup(loss.getLabels());
    Value flat =
        build::reshape(b, loc, labels.value, {build::typeOf(labels.value).getNumElements()});
    Value count = RowLoss::countOf(b, loc, flat);
    if (labels.spread.isRows())
      count = allReduce(count);
    divisor = MaxOp::create(b, loc, count, build::constant(b, loc, count.getType(), 1.0));
  }
  cast<CountedLossOpInterface>(fresh).divideBy(divisor);
  return success();
}

//===-- Forms -----------------------------------------------------------------------------===//

Value RankWriter::allReduce(Value part) {
  ++axis.reductions;
  return AllReduceOp::create(b, madeBy(kPass, part.getLoc()), part, Value(), axis.name, ranksAttr(),
                             TypeAttr());
}

Value RankWriter::convert(Value old, const Placed &from, const Spread &want, Operation *user) {
  OpBuilder::InsertionGuard here(b);
  if (from.spread.isSame()) {
    if (want.isPart() && build::constantValue(from.value) == 0.0)
      return from.value;
    if (want.isRows())
      if (Value rows = rowsOf(old, want, user))
        return rows;
  }
  if (body && from.spread.isSame() && want.isPart() && !isCarried(old) &&
      isa<FloatType>(build::typeOf(old).getElementType())) // as many parts, all alike
    return build::scale(b, madeBy(kPass, old.getLoc()), from.value,
                        1.0 / static_cast<double>(axis.ranks));
  if (body)
    return demand(old, want, user);
  // As soon as there is something to exchange.
  b.setInsertionPointAfterValue(from.value);
  if (Value order = from.spread.order ? from.spread.order : want.order) {
    const StringRef gatherer = order.getDefiningOp()->getName().getStringRef();
    if (old.getDefiningOp<IotaOp>())
      (void)fail(user, "numbers rows that " + gatherer +
                           " has gathered, as dropout of them does: how many the other ranks "
                           "have gathered, a rank does not know");
    else
      (void)fail(user, "mixes rows that " + gatherer +
                           " has gathered with others: each rank has gathered its own");
    return placeholder(old, want);
  }
  Location loc = old.getLoc();
  ArrayRef<int64_t> shape = build::shapeOf(old);
  if (from.spread.isPart() && want.isRows()) {
    ++axis.reductions;
    Value rows = ReduceScatterOp::create(b, loc, apart(from.value, want, shape[want.dim]), Value(),
                                         axisOf(want), axis.name, ranksAttr(), TypeAttr());
    return merged(rows, old, want);
  }
  if (from.spread.isPart())
    return allReduce(from.value);
  if (from.spread.isRows()) {
    const Spread &rows = from.spread;
    ++axis.gathers;
    Value whole = AllGatherOp::create(b, loc, apart(from.value, rows, shape[rows.dim] / axis.ranks),
                                      axisOf(rows), axis.name, ranksAttr(),
                                      b.getI64IntegerAttr(axis.exchanges++));
    whole = build::reshape(b, loc, whole, shape);
    return want.isSame() ? whole : ofWhole(whole, want, old);
  }
  return ofWhole(from.value, want, old);
}

Value RankWriter::apart(Value v, const Spread &rows, int64_t size) {
  if (rows.blocks == 1)
    return v;
  SmallVector<int64_t> shape(build::shapeOf(v));
  shape[rows.dim] = rows.blocks;
  shape.insert(shape.begin() + rows.dim + 1, size / rows.blocks);
  return build::reshape(b, v.getLoc(), v, shape);
}

IntegerAttr RankWriter::axisOf(const Spread &rows) {
  return b.getI64IntegerAttr(rows.dim + (rows.blocks > 1 ? 1 : 0));
}

Value RankWriter::merged(Value rows, Value old, const Spread &spread) {
  return build::reshape(b, old.getLoc(), rows,
                        localType(old.getType(), spread, axis.ranks).getShape());
}

Value RankWriter::ofWhole(Value whole, const Spread &want, Value old) {
  Location loc = old.getLoc();
  if (want.isRows()) {
    // Every rank is sent as many times its piece as there are ranks, and takes the first.
    const int64_t size = build::shapeOf(whole)[want.dim];
    Value pieces = AllToAllOp::create(b, loc, apart(whole, want, size), axisOf(want), axis.name,
                                      ranksAttr(), b.getI64IntegerAttr(axis.exchanges++));
    ++axis.gathers;
    Value rows = SliceOp::create(b, loc, pieces, axisOf(want), b.getI64IntegerAttr(0),
                                 b.getI64IntegerAttr(size / want.blocks / axis.ranks));
    return merged(rows, old, want);
  }
  // All of it is the part of rank 0.
  return build::onFirstRank(b, loc, axis.name, axis.ranks, whole,
                            build::constant(b, loc, whole.getType(), 0.0));
}

Value RankWriter::rowsOf(Value old, const Spread &want, Operation *user) {
  auto op = old.getDefiningOp<PartitionOpInterface>();
  std::optional<SmallVector<std::pair<unsigned, int64_t>>> along =
      op && op->getNumResults() == 1 ? op.operandsAlong(want.dim) : std::nullopt;
  if (!along && op && want.blocks == 1 && !want.order)
    return op.ownRows(b, want.dim, axis.name, axis.ranks);
  if (!along)
    return {};
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    const auto *it =
        llvm::find_if(*along, [&](auto pair) { return pair.first == operand.getOperandNumber(); });
    operands.push_back(
        as(operand.get(), it == along->end() ? Spread::same() : want.along(it->second), user));
  }
  return copy(op, operands, want)->getResult(0);
}

Value RankWriter::demand(Value old, const Spread &want, Operation *user) {
  if (auto argument = dyn_cast<BlockArgument>(old))
    demands.try_emplace(argument.getArgNumber(), want);
  else
    (void)fail(user, "needs " + describe(want) + " of what is " +
                         describe(placed.lookup(old).spread) +
                         " in a loop, where ranks cannot exchange it");
  return placeholder(old, want);
}

bool RankWriter::isCarried(Value old) {
  auto argument = dyn_cast<BlockArgument>(old);
  const int64_t over = body.getScan()->getOver().size();
  return argument && argument.getArgNumber() >= over &&
         argument.getArgNumber() < over + body.getScan()->getCarried();
}

Value RankWriter::placeholder(Value old, const Spread &want) {
  return UnrealizedConversionCastOp::create(
             b, old.getLoc(), localType(old.getType(), want, axis.ranks), ValueRange())
      .getResult(0);
}

} // namespace hydra
