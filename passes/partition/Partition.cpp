// hydra-partition: programs of the whole batch become programs of one rank's part of it.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowLoss.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_PARTITION
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-partition";

/// A value of the new program, and how it lies on the ranks.
struct Placed {
  Value value;
  Spread spread;
};

/// What cannot be done, and where.
struct Problem {
  Operation *op = nullptr;
  std::string text;
};

/// A body of loops for ranks, for arguments that lie in one way.
struct LoopForm {
  SmallVector<Spread> arguments, results; ///< as it takes them, and gives them
  EntryOp body;
};

/// What the programs of a model have in common while they are partitioned along one axis.
struct Axis {
  MeshAttr mesh;
  StringAttr name;
  int64_t ranks;
  int64_t exchanges = 0; ///< so far: their numbers
  unsigned reductions = 0, gathers = 0;
  std::map<std::string, LoopForm> loops = {}; ///< by body and how its operands lie

  /// How a variable lies on the ranks.
  Spread spreadOf(Operation *variable) const {
    if (ranks == 1)
      return Spread::same();
    if (auto state = dyn_cast<StateOp>(variable); state && state.isPart())
      return Spread::part();
    FlatUnitAttr unit = unitOf(variable);
    return unit ? rowsOver(unit.getOver()) : Spread::same();
  }

  /// Of what is cut over these axes, the rows that a rank has along this one. Axes named before it
  /// cut into larger pieces; where they are inside of it, and so have yet to cut, each of these
  /// pieces is a block.
  Spread rowsOver(StringRef over) const {
    Spread rows = Spread::rows(0);
    for (StringRef each : MeshAttr::axesOf(over)) {
      if (each == name.getValue())
        return rows;
      if (mesh.stride(each) < mesh.stride(name))
        rows.blocks *= mesh.size(each);
    }
    return Spread::same();
  }
};

RankedTensorType localType(Type type, const Spread &spread, int64_t ranks) {
  auto tensor = cast<RankedTensorType>(type);
  if (!spread.isRows())
    return tensor;
  SmallVector<int64_t> shape(tensor.getShape());
  shape[spread.dim] /= ranks;
  return tensor.clone(shape);
}

StringRef describe(const Spread &spread) {
  return spread.isSame()   ? "the whole"
         : spread.isRows() ? "rows"
         : spread.isOwn()  ? "of the order of each rank's rows"
                           : "a part of a sum";
}

/// Writes a block again for one rank.
class BlockWriter {
public:
  /// `body`: null, or the loop's body that is written.
  BlockWriter(Axis &axis, OpBuilder builder, EntryOp body = {})
      : axis(axis), b(std::move(builder)), body(body) {}

  void place(Value old, Value fresh, const Spread &spread) { placed[old] = {fresh, spread}; }
  Spread spreadOf(Value old) { return placed.lookup(old).spread; }

  LogicalResult write(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(write(op)))
        return failure();
    return success();
  }

  /// The value in that form, computed or exchanged where it is in another.
  Value as(Value old, const Spread &want, Operation *user) {
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

  /// What is wrong with the block; it is to be thrown away then.
  Problem problem;
  /// Of a loop's body: the arguments that are needed in another form.
  DenseMap<unsigned, Spread> demands;

private:
  LogicalResult fail(Operation *op, const Twine &text) {
    if (!problem.op)
      problem = {op, text.str()};
    return failure();
  }

  //===-- Operations ------------------------------------------------------------------------===//

  LogicalResult write(Operation &op) {
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
    auto add = dyn_cast<AddOp>(op);
    const bool updatesPart = add && isUpdateOfPart(add);
    if (updatesPart) // what each rank adds to its part is added up with it, later
      in[0] = in[1] = out[0] = Spread::part();
    else if (rule)
      rule.partition(axis.ranks, in, out);
    else if (!llvm::all_of(in, [](const Spread &s) { return s.isSame(); }))
      return fail(&op, "has no rule for a part of the batch (the partition interface)");
    if (add && !body && !updatesPart && startsSum(add))
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

  /// A rank has its rows of what is cut along the axis, its part of a sum, and all of every other
  /// variable.
  LogicalResult write(UseOp use) {
    const Spread spread = axis.spreadOf(use.lookup());
    place(use.getValue(), copy(use, {}, spread)->getResult(0), spread);
    return success();
  }

  /// Gives each rank its rows. A part that is added to a variable is added up from there.
  LogicalResult write(ShardOp shard) {
    const Placed x = placed.lookup(shard.getX());
    auto add = shard->hasOneUse() ? dyn_cast<AddOp>(*shard->user_begin()) : AddOp();
    const bool isAdded = x.spread.isPart() && add && llvm::any_of(add->getOperands(), [](Value v) {
                           return v.getDefiningOp<UseOp>();
                         });
    const Spread spread = isAdded ? Spread::part() : rowsOf(shard);
    place(shard.getY(), isAdded ? x.value : as(shard.getX(), spread, shard), spread);
    return success();
  }

  /// The rows that a rank has of what other axes have yet to cut into larger pieces.
  Spread rowsOf(ShardOp shard) const {
    Spread rows = Spread::rows(0);
    while ((shard = shard.getX().getDefiningOp<ShardOp>()))
      rows.blocks *= axis.mesh.size(shard.getOver());
    return rows;
  }

  /// Whether all that is computed from a part is linear in it until it is returned, or has at most
  /// so many elements where it must be added up; as far as operands are known.
  bool isSummedSmall(Value part, int64_t most) {
    DenseSet<Value> seen{part};
    SmallVector<Value> work{part};
    while (!work.empty()) {
      for (OpOperand &use : work.pop_back_val().getUses()) {
        Operation *op = use.getOwner();
        if (isa<ReturnOp>(op))
          continue;
        Spread taken = Spread::same();
        bool linear = false;
        if (auto rule = dyn_cast<PartitionOpInterface>(op)) {
          SmallVector<Spread> in = llvm::map_to_vector(op->getOperands(), [&](Value v) {
            return seen.contains(v) ? Spread::part() : spreadOf(v);
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
            work.push_back(result);
      }
    }
    return true;
  }

  /// The same operation on these operands, with results of one rank.
  Operation *copy(Operation *op, ValueRange operands, ArrayRef<Spread> results) {
    Operation *fresh = op->clone();
    fresh->setOperands(operands);
    for (auto [result, spread] : llvm::zip(fresh->getResults(), results))
      result.setType(localType(result.getType(), spread, axis.ranks));
    if (auto rule = dyn_cast<PartitionOpInterface>(fresh); rule && fresh->getNumResults() == 1)
      rule.takeShape(build::shapeOf(fresh->getResult(0)));
    return b.insert(fresh);
  }

  /// What is the same on all ranks, plus a sum over them: adds begin with it, as they do where a
  /// device has one part after the other.
  bool startsSum(AddOp add) {
    Spread first = spreadOf(add.getA()), second = spreadOf(add.getB());
    if (first.isRows() && !first.order && second.isPart() && add.getA().getDefiningOp<UseOp>()) {
      const int64_t size = build::shapeOf(add.getY())[first.dim];
      Value part = apart(placed.lookup(add.getB()).value, first, size);
      Value start = apart(placed.lookup(add.getA()).value, first, size / axis.ranks);
      Value sum = ReduceScatterOp::create(b, madeBy(kPass, add.getLoc()), part, start,
                                          axisOf(first), axis.name, ranksAttr(), TypeAttr());
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

  /// Whether a sum is the new value of state that is a part itself.
  static bool isUpdateOfPart(AddOp add) {
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

  /// A loss over a part of the rows divides by the labels that count on all ranks.
  LogicalResult countLabels(Operation *old, ArrayRef<Spread> in, Operation *fresh) {
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

  IntegerAttr ranksAttr() { return b.getI64IntegerAttr(axis.ranks); }

  Value allReduce(Value part) {
    ++axis.reductions;
    return AllReduceOp::create(b, madeBy(kPass, part.getLoc()), part, Value(), axis.name,
                               ranksAttr(), TypeAttr());
  }

  Value convert(Value old, const Placed &from, const Spread &want, Operation *user) {
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
      Value rows =
          ReduceScatterOp::create(b, loc, apart(from.value, want, shape[want.dim]), Value(),
                                  axisOf(want), axis.name, ranksAttr(), TypeAttr());
      return merged(rows, old, want);
    }
    if (from.spread.isPart())
      return allReduce(from.value);
    if (from.spread.isRows()) {
      const Spread &rows = from.spread;
      ++axis.gathers;
      Value whole = AllGatherOp::create(
          b, loc, apart(from.value, rows, shape[rows.dim] / axis.ranks), axisOf(rows), axis.name,
          ranksAttr(), b.getI64IntegerAttr(axis.exchanges++));
      whole = build::reshape(b, loc, whole, shape);
      return want.isSame() ? whole : ofWhole(whole, want, old);
    }
    return ofWhole(from.value, want, old);
  }

  /// Where blocks lie behind one another in a dimension of that size, they get one of their own.
  Value apart(Value v, const Spread &rows, int64_t size) {
    if (rows.blocks == 1)
      return v;
    SmallVector<int64_t> shape(build::shapeOf(v));
    shape[rows.dim] = rows.blocks;
    shape.insert(shape.begin() + rows.dim + 1, size / rows.blocks);
    return build::reshape(b, v.getLoc(), v, shape);
  }
  /// The dimension of rows where blocks are apart.
  IntegerAttr axisOf(const Spread &rows) {
    return b.getI64IntegerAttr(rows.dim + (rows.blocks > 1 ? 1 : 0));
  }
  /// Back to the shape that a rank's rows of a value have.
  Value merged(Value rows, Value old, const Spread &spread) {
    return build::reshape(b, old.getLoc(), rows,
                          localType(old.getType(), spread, axis.ranks).getShape());
  }

  /// Of what all ranks have: rows, or a part of a sum.
  Value ofWhole(Value whole, const Spread &want, Value old) {
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

  /// Rows of what is the same on all ranks, computed from rows of what it is computed from; null if
  /// that cannot be.
  Value rowsOf(Value old, const Spread &want, Operation *user) {
    auto op = old.getDefiningOp<PartitionOpInterface>();
    std::optional<SmallVector<std::pair<unsigned, int64_t>>> along =
        op && op->getNumResults() == 1 ? op.operandsAlong(want.dim) : std::nullopt;
    if (!along && op && want.blocks == 1 && !want.order)
      return op.ownRows(b, want.dim, axis.name, axis.ranks);
    if (!along)
      return {};
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      const auto *it = llvm::find_if(
          *along, [&](auto pair) { return pair.first == operand.getOperandNumber(); });
      operands.push_back(
          as(operand.get(), it == along->end() ? Spread::same() : want.along(it->second), user));
    }
    return copy(op, operands, want)->getResult(0);
  }

  /// In a loop ranks do not meet: what is needed in another form must be given in that form.
  Value demand(Value old, const Spread &want, Operation *user) {
    if (auto argument = dyn_cast<BlockArgument>(old))
      demands.try_emplace(argument.getArgNumber(), want);
    else
      (void)fail(user, "needs " + describe(want) + " of what is " +
                           describe(placed.lookup(old).spread) +
                           " in a loop, where ranks cannot exchange it");
    return placeholder(old, want);
  }

  bool isCarried(Value old) {
    auto argument = dyn_cast<BlockArgument>(old);
    const int64_t over = body.getWalk()->getOver().size();
    return argument && argument.getArgNumber() >= over &&
           argument.getArgNumber() < over + body.getWalk()->getCarried();
  }

  /// In place of a value in a block that is thrown away.
  Value placeholder(Value old, const Spread &want) {
    return UnrealizedConversionCastOp::create(
               b, old.getLoc(), localType(old.getType(), want, axis.ranks), ValueRange())
        .getResult(0);
  }

  //===-- Loops -----------------------------------------------------------------------------===//

  LogicalResult write(LoopOp loop) {
    SmallVector<Spread> in =
        llvm::map_to_vector(loop.getInputs(), [&](Value v) { return spreadOf(v); });
    std::string key = loop.getBody().str();
    llvm::raw_string_ostream text(key);
    for (const Spread &spread : in)
      text << '|' << spread.kind << ',' << spread.dim << ',' << spread.blocks << ','
           << spread.order.getAsOpaquePointer();
    auto [known, isNew] = axis.loops.try_emplace(key);
    if (isNew && failed(findForm(loop, in, known->second))) {
      axis.loops.erase(known);
      return failure();
    }
    const LoopForm &form = known->second;
    SmallVector<Value> inputs;
    for (auto [old, spread] : llvm::zip(loop.getInputs(), form.arguments))
      inputs.push_back(as(old, spread, loop));
    auto fresh = LoopOp::create(b, loop.getLoc(), form.body, inputs);
    for (auto [old, value, spread] : llvm::zip(loop.getResults(), fresh.getResults(), form.results))
      place(old, value, spread);
    return success();
  }

  /// Writes the body, for arguments in the forms that operands have, and again wherever it turns
  /// out to need them, or to carry them on, in another.
  LogicalResult findForm(LoopOp loop, SmallVector<Spread> in, LoopForm &form) {
    EntryOp old = loop.getEntry();
    WalkAttr walk = loop.getWalk();
    const size_t over = walk.getOver().size(), stacked = walk.getStacked().size();
    for (auto [spread, along] : llvm::zip(in, walk.getOver()))
      if (spread.isRows() && spread.dim == along)
        spread = Spread::same(); // who iterates over the batch has all of it
    const size_t kMostForms = 2 * in.size() + 2;
    Problem last;
    for (size_t tries = 0; tries < kMostForms; ++tries) {
      SmallVector<RankedTensorType> types;
      for (auto [argument, spread] : llvm::zip(old.getBody().getArguments(), in))
        types.push_back(localType(argument.getType(), spread, axis.ranks));
      EntryOp fresh =
          build::loopBody(old, (old.getSymName() + "_rank").str(), old.getLoc(), walk, types);
      Block &block = fresh.getBody().front();
      BlockWriter inside(axis, OpBuilder::atBlockEnd(&block), old);
      for (auto [argument, value, spread] :
           llvm::zip(old.getBody().getArguments(), block.getArguments(), in))
        inside.place(argument, value, spread);
      LogicalResult written = inside.write(old.getBody().front());
      bool changed = false;
      SmallVector<Spread> results;
      if (succeeded(written)) {
        SmallVector<Value> values;
        for (auto [i, value] : llvm::enumerate(old.getReturn().getOutputs())) {
          Spread spread = inside.spreadOf(value);
          if (i < stacked) {
            if (spread.isRows() && spread.dim == walk.getStacked()[i])
              (void)inside.fail(old.getReturn(), "joins rows of the batch along the batch");
          } else {
            Spread &carried = in[over + i - stacked];
            if (carried.isSame() && !spread.isSame()) {
              carried = spread;
              changed = true;
            } else if (!(carried == spread)) {
              spread = carried;
            }
          }
          values.push_back(inside.as(value, spread, old.getReturn()));
          results.push_back(spread);
        }
        for (auto &[number, want] : inside.demands)
          if (!(in[number] == want)) {
            if (number < over && want.isRows() && want.dim == walk.getOver()[number])
              (void)inside.fail(loop, "iterates over the batch and needs a part of it");
            in[number] = want;
            changed = true;
          }
        if (!changed && !inside.problem.op) {
          build::endLoopBody(fresh, values);
          form = {in, results, fresh};
          return success();
        }
      }
      last = inside.problem;
      fresh.erase();
      if (!changed)
        break;
    }
    return last.op
               ? fail(last.op, last.text)
               : fail(loop, "needs values in more than one form, which ranks exchange outside of "
                            "loops only");
  }

  Axis &axis;
  OpBuilder b;
  EntryOp body;
  DenseMap<Value, Placed> placed;
  DenseMap<Value, SmallVector<std::pair<Spread, Value>, 1>> converted;
  DenseMap<Value, Value> counts; ///< what losses divide by, by their labels
};

struct Partition : impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    std::optional<MeshAttr> mesh = model.getMesh();
    if (!mesh)
      return;
    // Outermost first: the ranks of a node have neighbouring rows.
    for (auto [name, ranks] : llvm::zip(mesh->getAxes(), mesh->getSizes())) {
      Axis axis{*mesh, name, ranks};
      const bool differs = llvm::any_of(model.getBody().front(), [&](Operation &op) {
        return isa<ParamOp, StateOp>(op) && !axis.spreadOf(&op).isSame();
      });
      for (EntryOp entry : llvm::make_early_inc_range(model.getBody().getOps<EntryOp>()))
        if (entry.isProgram() && (entry.getRows() || differs) && failed(write(entry, axis)))
          return signalPassFailure();
      cutVariables(model, axis);
      reductions += axis.reductions;
      gathers += axis.gathers;
    }
    model.walk([](ShardOp shard) { // of an axis of one rank
      shard.getY().replaceAllUsesWith(shard.getX());
      shard.erase();
    });
    joinGathers(model);
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      eraseDead(entry.getBody().front());
    eraseUnusedBodies(model);
  }

private:
  /// What is gathered of a unit over one axis after the other is one gather over all that cut it:
  /// later passes see what a rank has, and what all of them have.
  static void joinGathers(ModelOp model) {
    SmallVector<AllGatherOp> gathers;
    model.walk([&](AllGatherOp gather) { gathers.push_back(gather); });
    for (AllGatherOp last : gathers) {
      SmallVector<StringRef> axes;
      Value piece = last.getY();
      for (AllGatherOp each = last; each && isSideBySide(each);
           each = piece.getDefiningOp<AllGatherOp>()) {
        axes.push_back(each.getOver());
        piece = build::behindReshapes(each.getX());
      }
      auto use = piece.getDefiningOp<UseOp>();
      FlatUnitAttr unit = use ? unitOf(use.lookup()) : FlatUnitAttr();
      if (axes.size() < 2 || !unit || unit.getOver().getValue() != MeshAttr::joined(axes))
        continue;
      OpBuilder b(last);
      Value whole = AllGatherOp::create(
          b, last.getLoc(), piece, b.getI64IntegerAttr(0), unit.getOver(),
          b.getI64IntegerAttr(model.getMesh()->size(unit.getOver())), last.getNumberAttr());
      last.getY().replaceAllUsesWith(
          build::reshape(b, last.getLoc(), whole, build::shapeOf(last.getY())));
    }
  }

  /// Whether what ranks have lies one behind the other in memory.
  static bool isSideBySide(AllGatherOp gather) {
    return productOf(build::shapeOf(gather.getX()).take_front(gather.getAxis())) == 1;
  }

  /// Gives units, and the state that belongs to them, the rows that a rank has along the axis.
  static void cutVariables(ModelOp model, const Axis &axis) {
    SmallVector<Operation *> variables;
    for (Operation &op : model.getBody().front())
      if (isa<ParamOp, StateOp>(op) && axis.spreadOf(&op).isRows())
        variables.push_back(&op);
    for (Operation *variable : variables) {
      SmallVector<int64_t> shape = intList(variable->getAttrOfType<ArrayAttr>("shape"));
      shape[0] /= axis.ranks;
      variable->setAttr("shape", Builder(variable->getContext()).getI64ArrayAttr(shape));
    }
    for (Operation *variable : variables)
      if (auto param = dyn_cast<ParamOp>(variable))
        param.setUnitAttr(
            param.getUnitAttr().withPieces(param.getUnitAttr().getPieces() * axis.ranks));
  }

  LogicalResult write(EntryOp entry, Axis &axis) {
    if (axis.ranks == 1)
      return success();
    Block &old = entry.getBody().front(), &block = entry.getBody().emplaceBlock();
    BlockWriter writer(axis, OpBuilder::atBlockEnd(&block));
    for (BlockArgument argument : old.getArguments()) {
      const int64_t dim = entry.batchDimension(argument.getArgNumber());
      Spread spread = dim < 0 ? Spread::same() : Spread::rows(dim);
      if (dim >= 0 && build::shapeOf(argument)[dim] % axis.ranks != 0) {
        const int64_t batch = entry.batchType(argument.getArgNumber()).getShape()[dim];
        const int64_t outside = entry.ranks(); // that have parts of the batch already
        return entry.emitOpError()
               << "@" << entry.getSymName() << " has a batch of " << batch << ", which the "
               << outside * axis.ranks << " ranks along '" << axis.name.getValue()
               << "' of the mesh" << (outside > 1 ? " and the axes outside of it" : "")
               << " do not divide";
      }
      writer.place(
          argument,
          block.addArgument(localType(argument.getType(), spread, axis.ranks), argument.getLoc()),
          spread);
    }
    LogicalResult written = writer.write(old);
    ReturnOp end = cast<ReturnOp>(old.getTerminator());
    SmallVector<Value> values;
    SmallVector<int64_t> dims;
    const ArrayRef<int64_t> before =
        entry.getRows() ? entry.getRows()->getResults() : ArrayRef<int64_t>();
    auto model = entry->getParentOfType<ModelOp>();
    if (succeeded(written))
      for (auto [i, value] : llvm::enumerate(end.getValues())) {
        Spread spread = writer.spreadOf(value);
        if (!entry.getRows() || !spread.isRows() || spread.order || spread.blocks != 1)
          spread = Spread::same();
        if (i >= end.getOutputs().size()) {
          auto symbol = cast<FlatSymbolRefAttr>(end.getUpdated()[i - end.getOutputs().size()]);
          spread = axis.spreadOf(model.lookupSymbol(symbol.getAttr()));
        } else {
          dims.push_back(spread.isRows() ? spread.dim : -1);
          if (!before.empty() && before[i] != dims.back())
            return end.emitOpError()
                   << "has an output that is rows along some axes of the mesh only";
        }
        values.push_back(writer.as(value, spread, end));
      }
    if (writer.problem.op) {
      writer.problem.op->emitOpError(writer.problem.text);
      return failure();
    }
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    auto copy = cast<ReturnOp>(b.insert(end->clone()));
    copy->setOperands(values);
    old.dropAllReferences();
    old.erase();
    if (!entry.getRows()) // every rank has all that it is given, and all of what it gives
      return success();
    const SmallVector<int64_t> arguments(entry.getRows()->getArguments());
    for (BlockArgument argument : block.getArguments())
      entry.setArgumentType(argument.getArgNumber(), build::typeOf(argument));
    entry.setRowsAttr(RowsAttr::get(&getContext(), entry.ranks() * axis.ranks, arguments, dims));
    return success();
  }
};

} // namespace
} // namespace hydra
