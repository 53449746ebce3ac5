// hydra-keep-quantized: weights in 8 bits are state, written where their parameters are updated.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"
#include "passes/precision/AmaxHistory.h"

#include <map>
#include <set>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_KEEPQUANTIZED
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-keep-quantized";
/// The largest magnitudes of the weights as they are, which the next step is to remember.
constexpr StringLiteral kPresent = "fp8_amax.weights";

/// Numbers of an update whose largest magnitude is found together.
constexpr int64_t kBlock = 256;

/// An operand that is made of parameters: one, or several that are joined along an axis.
struct Weight {
  SmallVector<ParamOp> parameters;
  int64_t axis = 0;
  Type rounded; ///< what elements are cast to before they are quantized
  Type format;
  SmallVector<StateOp> copies = {}; ///< of each parameter, in 8 bits

  bool isSame(const Weight &other) const {
    return parameters == other.parameters && axis == other.axis && rounded == other.rounded &&
           format == other.format;
  }
};

/// By the row of the history that their scales are made of.
using Weights = std::map<int64_t, Weight>;

/// The parameter that a value is, itself or cast, where it lies by itself; or null.
ParamOp parameterOf(Value v) {
  if (auto cast = v.getDefiningOp<CastOp>())
    v = cast.getX();
  auto use = v.getDefiningOp<UseOp>();
  auto param = use ? dyn_cast<ParamOp>(use.lookup()) : ParamOp();
  return param && !param.getUnit() ? param : ParamOp();
}

/// The weight that is quantized; nullopt where it is made in another way than of whole parameters
/// that are cast once.
std::optional<Weight> weightOf(QuantizeOp quantize) {
  auto finite = quantize.getX().getDefiningOp<AddOp>(); // see AmaxHistory::withoutInfinities
  if (!finite)
    return std::nullopt;
  Value value = finite->getOperand(0);
  Weight weight{.parameters = {},
                .rounded = build::typeOf(value).getElementType(),
                .format = build::typeOf(quantize.getResult()).getElementType()};
  SmallVector<Value> parts{value};
  auto cast = value.getDefiningOp<CastOp>();
  if (auto concat = (cast ? cast.getX() : value).getDefiningOp<ConcatOp>()) {
    weight.axis = concat.getAxis();
    parts.assign(concat.getParts().begin(), concat.getParts().end());
    if (cast && llvm::any_of(parts, [](Value part) { return part.getDefiningOp<CastOp>(); }))
      return std::nullopt;
  }
  for (Value part : parts) {
    ParamOp param = parameterOf(part);
    if (!param || llvm::is_contained(weight.parameters, param))
      return std::nullopt;
    weight.parameters.push_back(param);
  }
  return weight;
}

/// Whether a value is made of variables alone.
bool isMadeOfVariables(Value value) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (!op || (op->getNumOperands() == 0 && !isa<UseOp, ConstantOp>(op)))
      return false;
    seen.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// What a program makes of a variable; null where it leaves that as it is.
Value updateOf(EntryOp entry, StringAttr variable) {
  ReturnOp end = entry.getReturn();
  for (auto [symbol, value] :
       llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates()))
    if (symbol.getAttr() == variable)
      return value;
  return {};
}

void addUpdates(EntryOp entry, ArrayRef<std::pair<StateOp, Value>> added) {
  ReturnOp end = entry.getReturn();
  SmallVector<Attribute> updated(end.getUpdated().begin(), end.getUpdated().end());
  for (auto [state, value] : added) {
    updated.push_back(FlatSymbolRefAttr::get(state));
    end.getValuesMutable().append(value);
  }
  end.setUpdatedAttr(Builder(end.getContext()).getArrayAttr(updated));
}

GuardOp guardOf(Value value) {
  return value ? build::behindReshapes(value).getDefiningOp<GuardOp>() : GuardOp();
}

Value read(OpBuilder &b, Location loc, StateOp state) {
  return UseOp::create(b, loc, state.getBoundType(), state.getSymName());
}

Value joined(OpBuilder &b, Location loc, ArrayRef<Value> parts, int64_t axis) {
  return parts.size() == 1 ? parts.front()
                           : ConcatOp::create(b, loc, parts, b.getI64IntegerAttr(axis)).getResult();
}

Value sliced(OpBuilder &b, Location loc, Value x, int64_t start, int64_t size) {
  if (size == build::shapeOf(x)[0])
    return x;
  return SliceOp::create(b, loc, x, b.getI64IntegerAttr(0), b.getI64IntegerAttr(start),
                         b.getI64IntegerAttr(size));
}

Value largest(OpBuilder &b, Location loc, Value x, int64_t axis) {
  return ReduceMaxOp::create(b, loc, x, b.getI64ArrayAttr({axis}), UnitAttr());
}

/// Whether an update of values of that shape goes element by element, and can go along blocks
/// instead: what it reads lies in memory, in one piece, and what it gives is guarded.
bool canGoAlongBlocks(OptimizerOpInterface update, ArrayRef<int64_t> shape) {
  auto rowWise = dyn_cast<RowWiseOpInterface>(update.getOperation());
  if (!rowWise || rowWise.rowDimensions() || shape.back() <= kBlock ||
      RefTensor::elements(shape) % kBlock != 0)
    return false;
  for (Value operand : update->getOperands())
    if (!build::shapeOf(operand).empty() &&
        (build::shapeOf(operand) != shape ||
         isa_and_present<RowWiseOpInterface>(build::behindReshapes(operand).getDefiningOp())))
      return false;
  return llvm::all_of(update->getResults(), [&](Value result) {
    return build::shapeOf(result) == shape && llvm::all_of(result.getUses(), [](OpOperand &use) {
             auto guard = dyn_cast<GuardOp>(use.getOwner());
             return guard && guard.getFresh() == use.get() && guard.getOld() != use.get();
           });
  });
}

/// Lets the update that makes a guarded value go along blocks: a warp then holds all of what it
/// finds a largest magnitude of, where rows would keep hundreds of threads waiting for each other,
/// or be read twice. Returns the value in blocks; as it is where it stays so.
Value alongBlocks(Value value) {
  auto own = value.getDefiningOp<GuardOp>();
  auto update = own ? own.getFresh().getDefiningOp<OptimizerOpInterface>() : OptimizerOpInterface();
  const SmallVector<int64_t> shape(build::shapeOf(value));
  if (!update || !canGoAlongBlocks(update, shape))
    return value;
  const SmallVector<int64_t> blocks{RefTensor::elements(shape) / kBlock, kBlock};
  auto inBlocks = [&](OpBuilder &b, Value x) {
    return build::shapeOf(x).empty() ? x : build::reshape(b, x.getLoc(), x, blocks);
  };
  OpBuilder b(update);
  SmallVector<Value> operands =
      llvm::map_to_vector(update->getOperands(), [&](Value x) { return inBlocks(b, x); });
  Operation *copy = b.clone(*update);
  copy->setOperands(operands);
  Value found;
  for (auto [result, fresh] : llvm::zip_equal(update->getResults(), copy->getResults())) {
    fresh.setType(build::typeOf(result).clone(blocks));
    for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
      auto guard = cast<GuardOp>(user);
      b.setInsertionPoint(guard);
      Value kept =
          GuardOp::create(b, guard.getLoc(), guard.getOk(), fresh, inBlocks(b, guard.getOld()));
      if (guard == own)
        found = kept;
      guard.replaceAllUsesWith(build::reshape(b, guard.getLoc(), kept, shape));
      guard.erase();
    }
  }
  update->erase();
  return found;
}

/// The largest magnitudes along the last axis of what has two axes or more, [rows].
Value magnitudesOfRows(OpBuilder &b, Location loc, Value x) {
  Value magnitudes = MaxOp::create(b, loc, x, NegOp::create(b, loc, x));
  Value ofRows = largest(b, loc, magnitudes, build::typeOf(x).getRank() - 1);
  return build::reshape(b, loc, ofRows, {build::typeOf(ofRows).getNumElements()});
}

/// Of each of these magnitudes [rows of its own] the largest, [count] f32. Neighbours of as many
/// rows are reduced at once.
Value largestOfEach(OpBuilder &b, Location loc, ArrayRef<Value> magnitudes) {
  SmallVector<Value> parts;
  while (!magnitudes.empty()) {
    const Type type = magnitudes.front().getType();
    const ArrayRef<Value> same =
        magnitudes.take_while([&](Value other) { return other.getType() == type; });
    magnitudes = magnitudes.drop_front(same.size());
    const int64_t rows = build::shapeOf(same.front())[0];
    Value all = joined(b, loc, same, 0);
    all = build::reshape(b, loc, all, {static_cast<int64_t>(same.size()), rows});
    parts.push_back(build::cast(b, loc, largest(b, loc, all, 1), b.getF32Type()));
  }
  return joined(b, loc, parts, 0);
}

struct KeepQuantized : impl::KeepQuantizedBase<KeepQuantized> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    history = {};
    weights.clear();
    for (StateOp state : model.getBody().getOps<StateOp>())
      if (state.getRole() == VariableRole::amax_history)
        history = state;
    if (!history || model.lookupSymbol(kPresent))
      return;
    findWeights(model);
    if (weights.empty())
      return;
    addStates(model);
    for (EntryOp entry : llvm::to_vector(model.getBody().getOps<EntryOp>()))
      if (entry.isProgram()) {
        readCopies(entry);
        handOnPresent(entry);
        if (updateOf(entry, history.getSymNameAttr()))
          writeCopies(entry);
        eraseDead(entry.getBody().front());
      }
    addDerivation(model);
  }

private:
  //===-- Which weights ---------------------------------------------------------------------===//

  /// Those of which all programs that know the history make the same of the same parameters, and
  /// which have new values whenever their scales have.
  void findWeights(ModelOp model) {
    std::set<int64_t> others;
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto quantize : entry.getBody().front().getOps<QuantizeOp>()) {
        std::optional<int64_t> row = AmaxHistory::rowOf(quantize.getScale(), history);
        if (!row || !isMadeOfVariables(quantize.getX()))
          continue;
        std::optional<Weight> weight = weightOf(quantize);
        if (!weight || !weights.try_emplace(*row, *weight).first->second.isSame(*weight))
          others.insert(*row);
      }
    for (auto &[row, weight] : weights)
      if (!isUpdatedWithHistory(model, weight))
        others.insert(row);
    for (int64_t row : others)
      weights.erase(row);
    left += others.size();
    kept += weights.size();
  }

  bool isUpdatedWithHistory(ModelOp model, const Weight &weight) {
    return llvm::all_of(model.getBody().getOps<EntryOp>(), [&](EntryOp entry) {
      Value moved = updateOf(entry, history.getSymNameAttr());
      GuardOp guard = guardOf(moved);
      return llvm::all_of(weight.parameters, [&](ParamOp param) {
        Value value = updateOf(entry, param.getSymNameAttr());
        GuardOp own = guardOf(value);
        return !moved && !value ? true : guard && own && guard.getOk() == own.getOk();
      });
    });
  }

  //===-- State -----------------------------------------------------------------------------===//

  void addStates(ModelOp model) {
    auto add = [&](Operation *behind, const Twine &name, ArrayRef<int64_t> shape, Type element,
                   StringAttr owner) {
      OpBuilder b(behind);
      b.setInsertionPointAfter(behind);
      return StateOp::create(b, madeBy(kPass, behind->getLoc()), b.getStringAttr(name),
                             b.getI64ArrayAttr(shape), TypeAttr::get(element),
                             InitAttr::get(b.getContext(), "zeros", {}), StringAttr(), Attribute(),
                             owner, VariableRoleAttr::get(b.getContext(), VariableRole::derived));
    };
    for (auto &[row, weight] : weights)
      for (ParamOp param : weight.parameters) {
        // One parameter may be in several operands, each with a scale of its own.
        std::string name =
            (param.getSymName() + "." + support::irName(*formatOf(weight.format))).str();
        if (model.lookupSymbol(name))
          name += "." + std::to_string(row);
        weight.copies.push_back(add(param, name, param.getBoundType().getShape(), weight.format,
                                    param.getSymNameAttr()));
      }
    present = add(history, kPresent, {static_cast<int64_t>(weights.size())},
                  Float32Type::get(&getContext()), StringAttr());
  }

  //===-- Reading ---------------------------------------------------------------------------===//

  void readCopies(EntryOp entry) {
    for (auto quantize : llvm::make_early_inc_range(entry.getBody().front().getOps<QuantizeOp>())) {
      std::optional<int64_t> row = AmaxHistory::rowOf(quantize.getScale(), history);
      auto it = row ? weights.find(*row) : weights.end();
      if (it == weights.end())
        continue;
      OpBuilder b(quantize);
      const Location loc = madeBy(kPass, quantize.getLoc());
      quantize.replaceAllUsesWith(joined(
          b, loc,
          llvm::map_to_vector(it->second.copies, [&](StateOp copy) { return read(b, loc, copy); }),
          it->second.axis));
      quantize.erase();
    }
  }

  /// A program finds the largest magnitudes of kept weights in the state that has them.
  void handOnPresent(EntryOp entry) {
    ConcatOp found = findingsOf(entry);
    if (!found)
      return;
    OpBuilder b(found);
    const Location loc = madeBy(kPass, found.getLoc());
    Value known = read(b, loc, present);
    SmallVector<Value> parts;
    int64_t first = 0, run = 0; // of the rows of a part; rows in front of it that are kept
    auto takeRun = [&](int64_t end) {
      if (run > 0)
        parts.push_back(sliced(b, loc, known, numberOf(end - run), run));
      run = 0;
    };
    for (Value part : found.getParts()) {
      const int64_t end = first + build::shapeOf(part)[0];
      for (int64_t row = first; row < end;) {
        if (weights.count(row)) {
          ++run;
          ++row;
          continue;
        }
        takeRun(row);
        int64_t next = row + 1;
        while (next < end && !weights.count(next))
          ++next;
        parts.push_back(sliced(b, loc, part, row - first, next - row));
        row = next;
      }
      first = end;
    }
    takeRun(first);
    found.replaceAllUsesWith(joined(b, loc, parts, 0));
    found.erase();
  }

  /// Which of the kept weights has that row.
  int64_t numberOf(int64_t row) { return std::distance(weights.begin(), weights.find(row)); }

  /// The largest magnitudes that a program finds of all operands, [operands]; null where it finds
  /// none.
  ConcatOp findingsOf(EntryOp entry) {
    const auto type = RankedTensorType::get({history.getBoundType().getDimSize(0)},
                                            Float32Type::get(&getContext()));
    llvm::SetVector<Value> seen;
    if (GuardOp guard = guardOf(updateOf(entry, history.getSymNameAttr())))
      seen.insert(guard.getFresh());
    if (Value step = updateOf(entry, StringAttr::get(&getContext(), AmaxHistory::kStep)))
      seen.insert(step);
    for (size_t i = 0; i < seen.size(); ++i) {
      Operation *op = seen[i].getDefiningOp();
      auto concat = dyn_cast_or_null<ConcatOp>(op);
      if (concat && concat.getY().getType() == type)
        return concat;
      if (op)
        seen.insert(op->operand_begin(), op->operand_end());
    }
    return {};
  }

  //===-- Writing ---------------------------------------------------------------------------===//

  /// Rows of kept weights, of the history or of what is made of it.
  Value rowsOf(OpBuilder &b, Location loc, Value x) {
    SmallVector<Value> parts;
    for (auto it = weights.begin(); it != weights.end();) {
      const int64_t first = it->first;
      int64_t end = first;
      for (; it != weights.end() && it->first == end; ++it)
        ++end;
      parts.push_back(sliced(b, loc, x, first, end - first));
    }
    return joined(b, loc, parts, 0);
  }

  /// The scale [] of each kept weight by rows of the history, [weights, N].
  SmallVector<Value> scalesOf(OpBuilder &b, Location loc, Value rows) {
    Value amax = largest(b, loc, rows, 1);
    llvm::SmallDenseMap<Type, Value> all; // by format
    SmallVector<Value> scales;
    for (auto &[row, weight] : weights) {
      Value &ofFormat = all[weight.format];
      if (!ofFormat)
        ofFormat = AmaxHistory::scales(b, loc, amax, OperandKind::Weight, weight.format);
      scales.push_back(build::reshape(
          b, loc, sliced(b, loc, ofFormat, static_cast<int64_t>(scales.size()), 1), {}));
    }
    return scales;
  }

  /// The value of a parameter in 8 bits; the largest magnitudes of rows are added to the others.
  Value quantized(OpBuilder &b, Location loc, Value value, const Weight &weight, Value scale,
                  SmallVectorImpl<Value> &magnitudes) {
    Value rounded = build::cast(b, loc, value, weight.rounded);
    magnitudes.push_back(magnitudesOfRows(b, loc, rounded));
    return QuantizeOp::create(b, loc, AmaxHistory::withoutInfinities(b, loc, rounded), scale,
                              TypeAttr::get(weight.format), UnitAttr());
  }

  /// Beside the new values of parameters those in 8 bits, by the scales of the next step. They are
  /// known early: they remember the values that are replaced, and of these the magnitudes are
  /// state. If the update is refused, scales and values are the old ones.
  void writeCopies(EntryOp entry) {
    const Value ok = guardOf(updateOf(entry, history.getSymNameAttr())).getOk();
    OpBuilder b(entry.getReturn());
    b.setInsertionPointAfterValue(ok);
    Location loc = madeBy(kPass, history.getLoc());
    Value old = rowsOf(b, loc, read(b, loc, history));
    Value moved = AmaxHistory::shifted(b, loc, old, read(b, loc, present));
    SmallVector<Value> scales = scalesOf(b, loc, GuardOp::create(b, loc, ok, moved, old));
    SmallVector<std::pair<StateOp, Value>> updates;
    SmallVector<Value> magnitudes; // of each weight
    for (auto [entryOf, scale] : llvm::zip_equal(weights, scales)) {
      Weight &weight = entryOf.second;
      SmallVector<Value> ofParameters;
      for (auto [param, copy] : llvm::zip_equal(weight.parameters, weight.copies)) {
        // In the shape in which it is made, so that it is rounded there.
        Value made = alongBlocks(build::behindReshapes(updateOf(entry, param.getSymNameAttr())));
        if (build::typeOf(made).getRank() < 2)
          made = updateOf(entry, param.getSymNameAttr());
        b.setInsertionPointAfterValue(made);
        const Location at = madeBy(kPass, made.getLoc());
        Value q = quantized(b, at, made, weight, scale, ofParameters);
        updates.emplace_back(copy, build::reshape(b, at, q, param.getBoundType().getShape()));
      }
      b.setInsertionPoint(entry.getReturn());
      magnitudes.push_back(joined(b, loc, ofParameters, 0));
    }
    updates.emplace_back(present, largestOfEach(b, loc, magnitudes));
    addUpdates(entry, updates);
  }

  //===-- Beginning -------------------------------------------------------------------------===//

  /// The program that makes the states of parameters and history, as the update before has.
  void addDerivation(ModelOp model) {
    std::string name = "derive";
    for (unsigned i = 1; model.lookupSymbol(name); ++i)
      name = "derive." + std::to_string(i);
    auto b = OpBuilder::atBlockEnd(&model.getBody().front());
    auto none = b.getArrayAttr({});
    const Location loc = madeBy(kPass, history.getLoc());
    auto entry = EntryOp::create(b, loc, b.getStringAttr(name), none, none, none, none, none,
                                 b.getStringAttr("derive"), ProgramRoleAttr(),
                                 b.getDenseI64ArrayAttr({}), WalkAttr(), RowsAttr());
    b.setInsertionPointToEnd(&entry.getBody().emplaceBlock());
    auto end = ReturnOp::create(b, loc, ValueRange(), none, none, ArrayAttr());
    b.setInsertionPoint(end);
    SmallVector<Value> scales = scalesOf(b, loc, rowsOf(b, loc, read(b, loc, history)));
    SmallVector<std::pair<StateOp, Value>> updates;
    SmallVector<Value> magnitudes;
    for (auto [entryOf, scale] : llvm::zip_equal(weights, scales)) {
      Weight &weight = entryOf.second;
      SmallVector<Value> ofParameters;
      for (auto [param, copy] : llvm::zip_equal(weight.parameters, weight.copies)) {
        Value value = UseOp::create(b, loc, param.getBoundType(), param.getSymName());
        updates.emplace_back(copy, quantized(b, loc, value, weight, scale, ofParameters));
      }
      magnitudes.push_back(joined(b, loc, ofParameters, 0));
    }
    updates.emplace_back(present, largestOfEach(b, loc, magnitudes));
    addUpdates(entry, updates);
  }

  StateOp history, present;
  Weights weights;
};

} // namespace
} // namespace hydra
