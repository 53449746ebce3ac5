// hydra-mixed-precision: which values are held or multiplied in fewer bits, and where they are
// rounded.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"
#include "passes/precision/Policy.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_MIXEDPRECISION
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-mixed-precision";

bool hasFloats(Value v) { return isa<FloatType>(build::typeOf(v).getElementType()); }
bool isF32(Value v) { return build::typeOf(v).getElementType().isF32(); }
/// Whether a user rounds what it reads to this type.
bool roundsTo(Operation *user, Type element) {
  return isa<CastOp>(user) && build::typeOf(user->getResult(0)).getElementType() == element;
}

bool takesRounded(Operation *op, unsigned operand) {
  return cast<PrecisionOpInterface>(op).takesRounded(operand);
}

RankedTensorType typeOfVariable(Operation *variable) {
  if (auto param = dyn_cast<ParamOp>(variable))
    return param.getBoundType();
  return cast<StateOp>(variable).getBoundType();
}

/// Infers the results of an operation anew, after its operands or attributes have changed.
LogicalResult retype(Operation *op) {
  auto inference = dyn_cast<InferTypeOpInterface>(op);
  if (!inference)
    return success();
  SmallVector<Type> types;
  if (failed(inference.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                        op->getDiscardableAttrDictionary(),
                                        op->getPropertiesStorage(), op->getRegions(), types)))
    return failure();
  for (auto [result, type] : llvm::zip(op->getResults(), types))
    result.setType(type);
  return success();
}

/// How a policy treats matmuls.
struct Settings {
  Type narrow;  ///< what values are rounded to
  bool reduced; ///< partial sums may be rounded too
  bool logits;  ///< and logits that only a loss reads
};

/// What the policies that hold narrow values share: values in the other type.
class Converter {
public:
  Converter(EntryOp entry, const Settings &settings)
      : entry(entry), settings(settings), narrow(settings.narrow), builder(entry.getContext()) {}
  virtual ~Converter() = default;

  LogicalResult run() {
    SmallVector<Type> results(entry.getReturn()->getOperandTypes());
    SmallVector<Operation *> ops;
    for (Operation &op : entry.getBody().front())
      ops.push_back(&op);
    for (Operation *op : ops)
      if (failed(convert(op)))
        return failure();
    if (!entry.isProgram())
      keepResults(results);
    eraseDead(entry.getBody().front());
    joinForms();
    if (!entry.isProgram())
      narrowArguments();
    placeCasts();
    return success();
  }

  unsigned matmuls = 0, casts = 0;

protected:
  virtual LogicalResult convert(Operation *op) = 0;
  /// Last, when what nothing uses is gone: of results that exist in both types, one may do.
  virtual void joinForms() {}

  Value castBehind(Value v, Type element) {
    builder.setInsertionPointAfterValue(v);
    ++casts;
    return build::cast(builder, madeBy(kPass, v.getLoc()), v, element);
  }

  /// Lets a matmul round what it makes on the way.
  void letRound(Operation *op) {
    auto matmul = cast<PrecisionOpInterface>(op);
    if (settings.reduced)
      matmul.allowReducedReduction();
    if (settings.logits)
      matmul.roundLogits();
  }

  EntryOp entry;
  Settings settings;
  Type narrow;
  OpBuilder builder;

private:
  /// A cast that only later phases read is of the first of those.
  void placeCasts() {
    for (Operation &op : llvm::reverse(entry.getBody().front())) {
      ScopeAttr own = isa<CastOp>(op) ? scopeOf(op.getLoc()) : ScopeAttr();
      if (!own || own.getPass() != kPass)
        continue;
      Phase first = Phase::optimizer;
      for (Operation *user : op.getUsers()) {
        ScopeAttr scope = scopeOf(user->getLoc());
        first = std::min(first, scope ? scope.getPhase() : own.getPhase());
      }
      op.setLoc(withPhase(op.getLoc(), std::max(first, own.getPhase())));
    }
  }

  /// Gives the results of a loop's body the types that loops over it have.
  void keepResults(ArrayRef<Type> types) {
    builder.setInsertionPoint(entry.getReturn());
    for (auto [operand, type] : llvm::zip(entry.getReturn()->getOpOperands(), types))
      operand.set(build::cast(builder, operand.get().getLoc(), operand.get(),
                              cast<RankedTensorType>(type).getElementType()));
  }

  /// Lets loops round what their body only reads rounded, so that it is rounded once.
  void narrowArguments() {
    const unsigned over = entry.getScan()->getOver().size(),
                   carried = entry.getScan()->getCarried();
    for (BlockArgument argument : entry.getBody().getArguments()) {
      const unsigned number = argument.getArgNumber();
      if ((number >= over && number < over + carried) || !isF32(argument) || argument.use_empty() ||
          !llvm::all_of(argument.getUsers(),
                        [&](Operation *user) { return roundsTo(user, narrow); }))
        continue;
      for (Operation *cast : SmallVector<Operation *>(argument.getUsers())) {
        cast->getResult(0).replaceAllUsesWith(argument);
        cast->erase();
      }
      entry.setArgumentType(number, build::typeOf(argument).clone(narrow));
    }
  }
};

/// f32 everywhere but around matmuls. Every value keeps its f32 form; matmuls read and write
/// rounded twins.
class AutoCast : public Converter {
public:
  using Converter::Converter;

protected:
  LogicalResult convert(Operation *op) override {
    if (auto cast = dyn_cast<CastOp>(op)) {
      joinCast(cast);
      return success();
    }
    switch (precisionOf(op)) {
    case Precision::Matmul:
      return convertMatmul(op);
    case Precision::Move:
      return moveTwins(op);
    default:
      return success();
    }
  }

private:
  struct Twin {
    Value value; ///< narrow
    bool exact;  ///< whether the f32 value has the same numbers
  };

  LogicalResult convertMatmul(Operation *op) {
    // What the program itself has in few bits stays so: its readers were typed for it.
    if (llvm::any_of(op->getResults(), [&](Value v) { return isF32(v) && wantedExactly(v); }))
      cast<PrecisionOpInterface>(op).yieldIn(Float32Type::get(op->getContext()));
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      if (!isF32(v) || !takesRounded(op, operand.getOperandNumber()))
        continue;
      FailureOr<Value> low = rounded(v);
      if (failed(low))
        return failure();
      operand.set(*low);
    }
    letRound(op);
    SmallVector<Type> before(op->getResultTypes());
    if (failed(retype(op)))
      return failure();
    ++matmuls;
    for (auto [result, type] : llvm::zip(op->getResults(), before))
      if (result.getType() != type)
        setTwin(result);
    return success();
  }

  /// An operation that reads what it works on from memory (a rotation) reads rounded numbers there,
  /// or the same in f32: where both results are needed, it works on the rounded ones, and nothing
  /// is moved in f32.
  void joinForms() override {
    for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
      auto rowWise = dyn_cast<RowWiseOpInterface>(op);
      if (!rowWise || precisionOf(&op) != Precision::Follow || op.getNumResults() != 1 ||
          build::typeOf(op.getResult(0)).getElementType() != narrow ||
          llvm::none_of(llvm::seq(op.getNumOperands()), [&](unsigned i) {
            return rowWise.needsOuterOperand(i) &&
                   build::typeOf(op.getOperand(i)).getElementType() == narrow;
          }))
        continue;
      if (Operation *wide = inF32(&op)) {
        op.moveBefore(wide);
        wide->getResult(0).replaceAllUsesWith(castBehind(op.getResult(0), builder.getF32Type()));
        wide->erase();
      }
    }
    eraseDead(entry.getBody().front());
  }

  /// The operation before this one that is the same but for its operands, which are cast to f32.
  Operation *inF32(Operation *op) {
    SmallVector<Value> operands;
    Operation *cast = nullptr;
    for (Value v : op->getOperands()) {
      if (build::typeOf(v).getElementType() == narrow) {
        auto users = v.getUsers();
        auto wide = llvm::find_if(
            users, [&](Operation *user) { return roundsTo(user, builder.getF32Type()); });
        if (wide == users.end())
          return nullptr;
        cast = *wide;
        v = cast->getResult(0);
      }
      operands.push_back(v);
    }
    if (!cast)
      return nullptr;
    for (Operation *user : cast->getUsers())
      if (user->getName() == op->getName() && llvm::equal(user->getOperands(), operands) &&
          user->getPropertiesAsAttribute() == op->getPropertiesAsAttribute() &&
          isF32(user->getResult(0)) && user->isBeforeInBlock(op))
        return user;
    return nullptr;
  }

  /// What the program itself rounds or widens: of a value that is narrow now, nothing is left of
  /// it.
  void joinCast(CastOp cast) {
    Value from = cast.getX(), to = cast.getY();
    if (isF32(to) && build::typeOf(from).getElementType() == narrow) {
      twins[to] = {from, /*exact=*/true};
    } else if (auto it = twins.find(from);
               it != twins.end() && it->second.exact && roundsTo(cast, narrow)) {
      to.replaceAllUsesWith(it->second.value);
    }
  }

  /// Lets all users of a result that now is narrow see it in f32.
  void setTwin(Value low) {
    Value wide = castBehind(low, builder.getF32Type());
    low.replaceAllUsesExcept(wide, wide.getDefiningOp());
    twins[wide] = {low, /*exact=*/true};
  }

  /// Moves the narrow form of exact values, so that the f32 one need not move.
  LogicalResult moveTwins(Operation *op) {
    if (!allExact(op))
      return success();
    FailureOr<Operation *> moved = onTwins(op);
    if (failed(moved))
      return failure();
    Value low = (*moved)->getResult(0);
    op->getResult(0).replaceAllUsesWith(low);
    setTwin(low);
    return success();
  }

  /// Operands that are f32 by definition (positions) do not count.
  bool allExact(Operation *op) {
    bool any = false;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!hasFloats(operand.get()) || !takesRounded(op, operand.getOperandNumber()))
        continue;
      auto it = twins.find(operand.get());
      if (it == twins.end() || !it->second.exact)
        return false;
      any = true;
    }
    return any;
  }

  /// The same operation on the narrow form of its operands, behind it.
  FailureOr<Operation *> onTwins(Operation *op) {
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      FailureOr<Value> low =
          isF32(v) && takesRounded(op, operand.getOperandNumber()) ? rounded(v) : v;
      if (failed(low))
        return failure();
      operands.push_back(*low);
    }
    builder.setInsertionPointAfter(op);
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    if (failed(retype(copy)))
      return failure();
    return copy;
  }

  /// The value rounded, once however many read it. A cast goes as near to the source as it can:
  /// before moves, and into an operation that computes on rounded numbers anyway.
  FailureOr<Value> rounded(Value v) {
    if (auto it = twins.find(v); it != twins.end())
      return it->second.value;
    Operation *op = v.getDefiningOp();
    // Parameters are joined by lying side by side, and rounded as one.
    bool moves = op && precisionOf(op) == Precision::Move &&
                 (op->getNumOperands() == 1 || !llvm::any_of(op->getOperands(), isVariable));
    bool computes = op && precisionOf(op) == Precision::Follow && op->getNumResults() == 1 &&
                    !isa<CastOp>(op) && allExact(op);
    Value low;
    if (moves || computes) {
      FailureOr<Operation *> copy = onTwins(op);
      if (failed(copy))
        return failure();
      low = (*copy)->getResult(0);
    } else {
      low = castBehind(v, narrow);
    }
    twins[v] = {low, /*exact=*/false};
    return low;
  }

  static bool isVariable(Value v) { return v.getDefiningOp<UseOp>() != nullptr; }

  /// Whether a loss, an update or an output reads this value, behind moves and elementwise
  /// operations: gradients of parameters, logits. Not where the program itself rounds it first.
  bool wantedExactly(Value v) const {
    SmallVector<Value> work{v};
    DenseSet<Value> seen{v};
    while (!work.empty()) {
      Value next = work.pop_back_val();
      for (Operation *user : next.getUsers()) {
        Precision precision = precisionOf(user);
        if (precision == Precision::Exact)
          return true;
        if (next == v && roundsTo(user, narrow))
          continue;
        if (precision == Precision::Move || precision == Precision::Follow)
          for (Value result : user->getResults())
            if (seen.insert(result).second)
              work.push_back(result);
      }
    }
    return false;
  }

  DenseMap<Value, Twin> twins; ///< by f32 value
};

/// Narrow everywhere but in statistics, sums and losses. Numbers without rank of their own
/// (constants, rank 0) do not widen what they meet.
class Everywhere : public Converter {
public:
  using Converter::Converter;

protected:
  LogicalResult convert(Operation *op) override {
    if (auto use = dyn_cast<UseOp>(op)) {
      use.getValue().setType(typeOfVariable(use.lookup()));
      return success();
    }
    if (auto end = dyn_cast<ReturnOp>(op)) {
      convertReturn(end);
      return success();
    }
    if (!isa<PrecisionOpInterface>(op) || op->getNumOperands() == 0)
      return success();
    if (isa<CastOp>(op))
      return retype(op);
    switch (precisionOf(op)) {
    case Precision::Exact:
      for (OpOperand &operand : op->getOpOperands())
        if (hasFloats(operand.get()) && !takesRounded(op, operand.getOperandNumber()))
          operand.set(widened(operand.get()));
      return retype(op);
    case Precision::Matmul:
      return convertMatmul(op);
    default:
      return convertOther(op);
    }
  }

private:
  void convertReturn(ReturnOp end) {
    auto model = entry->getParentOfType<ModelOp>();
    builder.setInsertionPoint(end);
    auto castTo = [&](OpOperand &operand, Operation *variable) {
      Type element = typeOfVariable(variable).getElementType();
      operand.set(build::cast(builder, operand.get().getLoc(), operand.get(), element));
    };
    MutableArrayRef<OpOperand> operands = end->getOpOperands();
    for (unsigned i = 0; i < end.getOutputNames().size(); ++i)
      if (FlatSymbolRefAttr parameter = end.gradientOf(i))
        castTo(operands[i], model.lookupSymbol(parameter));
    for (auto [i, name] : llvm::enumerate(end.getUpdated().getAsValueRange<FlatSymbolRefAttr>()))
      castTo(operands[end.getOutputNames().size() + i], model.lookupSymbol(name));
  }

  LogicalResult convertMatmul(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      if (!hasFloats(v))
        continue;
      bool low = takesRounded(op, operand.getOperandNumber());
      operand.set(low ? rounded(v) : widened(v));
    }
    letRound(op);
    ++matmuls;
    return retype(op);
  }

  LogicalResult convertOther(Operation *op) {
    bool low = false, strong = false, weak = false;
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      if (!hasFloats(v))
        continue;
      if (!takesRounded(op, operand.getOperandNumber())) {
        operand.set(widened(v));
        continue;
      }
      low |= build::typeOf(v).getElementType() == narrow;
      (isWeak(v) ? weak : strong) |= isF32(v);
    }
    if (!low) {
      if (!strong && weak && precisionOf(op) <= Precision::Follow)
        weakValues.insert(op->result_begin(), op->result_end());
      return retype(op);
    }
    if (!strong && !weak)
      return retype(op);
    for (OpOperand &operand : op->getOpOperands())
      if (hasFloats(operand.get()))
        operand.set(widened(operand.get()));
    if (failed(retype(op)))
      return failure();
    Value result = op->getResult(0);
    if (strong || !hasFloats(result)) // comparisons have truth values
      return success();
    Value rounded = castBehind(result, narrow);
    result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
    return success();
  }

  bool isWeak(Value v) {
    return build::shapeOf(v).empty() || weakValues.contains(v) || build::constantValue(v);
  }

  Value rounded(Value v) { return other(v, narrow); }
  Value widened(Value v) { return other(v, builder.getF32Type()); }
  Value other(Value v, Type element) {
    if (build::typeOf(v).getElementType() == element)
      return v;
    Value &known = others[v];
    if (!known)
      known = castBehind(v, element);
    return known;
  }

  DenseSet<Value> weakValues;
  DenseMap<Value, Value> others;
};

struct MixedPrecision : impl::MixedPrecisionBase<MixedPrecision> {
  using MixedPrecisionBase::MixedPrecisionBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    const PrecisionPolicy *chosen = precisionPolicy(policy);
    if (!chosen) {
      model.emitOpError() << "has no precision policy '" << policy.getValue() << "'; expected "
                          << precisionPolicyNames();
      return signalPassFailure();
    }
    if (chosen->format == support::DType::F32)
      return;
    const Type format = elementType(&getContext(), chosen->format);
    if (!chosen->holdsValues())
      return multiplyIn(model, format);
    if (chosen->everywhere)
      storeIn(model, format);
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      std::unique_ptr<Converter> converter;
      if (chosen->everywhere)
        converter = std::make_unique<Everywhere>(entry, Settings{format, reduced, roundLogits});
      else
        converter = std::make_unique<AutoCast>(entry, Settings{format, reduced, roundLogits});
      if (failed(converter->run()))
        return signalPassFailure();
      matmuls += converter->matmuls;
      casts += converter->casts;
    }
    narrowResults(model, format);
  }

private:
  /// Lets matmuls of f32 operands multiply in a format that no tensor holds.
  void multiplyIn(ModelOp model, Type format) {
    model.walk([&](PrecisionOpInterface op) {
      // A loop may read nothing.
      if (op.precisionClass() == Precision::Matmul && op->getNumOperands() > 0 &&
          isF32(op->getOperand(0)) && op.multiplyIn(format))
        ++matmuls;
    });
  }

  /// Lets bodies of loops round what all loops over them only use rounded.
  static void narrowResults(ModelOp model, Type narrow) {
    llvm::MapVector<Operation *, SmallVector<LoopOp>> loops; // by body
    model.walk([&](LoopOp loop) { loops[loop.getEntry()].push_back(loop); });
    for (auto &[body, users] : loops) {
      auto entry = cast<EntryOp>(body);
      OpBuilder b(entry.getReturn());
      for (unsigned i = 0; i < entry.getScan()->getStacked().size(); ++i) {
        auto isRounded = [&](LoopOp loop) {
          return llvm::all_of(loop.getResult(i).getUsers(),
                              [&](Operation *user) { return roundsTo(user, narrow); });
        };
        OpOperand &result = entry.getReturn()->getOpOperand(i);
        if (!isF32(result.get()) || !llvm::all_of(users, isRounded))
          continue;
        // Behind a reshape the same cast may exist for other uses.
        Value value = result.get();
        auto reshape = value.getDefiningOp<ReshapeOp>();
        Value low = build::cast(b, value.getLoc(), reshape ? reshape.getX() : value, narrow);
        result.set(build::reshape(b, value.getLoc(), low, build::shapeOf(value)));
        for (LoopOp loop : users) {
          Value whole = loop.getResult(i);
          whole.setType(build::typeOf(whole).clone(narrow));
          for (Operation *user : SmallVector<Operation *>(whole.getUsers())) {
            user->getResult(0).replaceAllUsesWith(whole);
            user->erase();
          }
        }
      }
    }
  }

  /// Parameters and the moments of their updates, except those of 8 bits and the scales beside
  /// them. Other state stays as it is.
  static void storeIn(ModelOp model, Type element) {
    auto type = TypeAttr::get(element);
    for (ParamOp param : model.getBody().getOps<ParamOp>())
      param.setDtypeAttr(type);
    DenseSet<StringAttr> scaled; // parameters with moments of 8 bits
    for (StateOp state : model.getBody().getOps<StateOp>())
      if (state.getRole() == VariableRole::moment && isEightBitFloat(state.getDtype()))
        scaled.insert(state.getOwnerAttr());
    for (StateOp state : model.getBody().getOps<StateOp>())
      if (state.getRole() == VariableRole::moment && isa<FloatType>(state.getDtype()) &&
          !scaled.contains(state.getOwnerAttr()))
        state.setDtypeAttr(type);
  }
};

} // namespace
} // namespace hydra
