// hydra-mixed-precision: which values are bf16, and where they are rounded.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_MIXEDPRECISION
#include "passes/Passes.h.inc"

namespace {

bool hasFloats(Value v) { return isa<FloatType>(build::typeOf(v).getElementType()); }
bool isF32(Value v) { return build::typeOf(v).getElementType().isF32(); }
bool isBF16(Value v) { return build::typeOf(v).getElementType().isBF16(); }

Precision classOf(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision ? precision.precisionClass() : Precision::Exact;
}
bool takesBf16(Operation *op, unsigned operand) {
  return cast<PrecisionOpInterface>(op).takesBf16(operand);
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

/// What the two policies share: values in the other type.
class Converter {
public:
  explicit Converter(EntryOp entry) : entry(entry), builder(entry.getContext()) {}
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
    if (!entry.isProgram())
      narrowArguments();
    return success();
  }

  unsigned products = 0, casts = 0;

protected:
  virtual LogicalResult convert(Operation *op) = 0;

  Value castBehind(Value v, Type element) {
    builder.setInsertionPointAfterValue(v);
    ++casts;
    return build::cast(builder, v.getLoc(), v, element);
  }

  EntryOp entry;
  OpBuilder builder;

private:
  /// Gives the results of a loop's body the types that loops over it have.
  void keepResults(ArrayRef<Type> types) {
    builder.setInsertionPoint(entry.getReturn());
    for (auto [operand, type] : llvm::zip(entry.getReturn()->getOpOperands(), types))
      operand.set(build::cast(builder, operand.get().getLoc(), operand.get(),
                              cast<RankedTensorType>(type).getElementType()));
  }

  /// Lets loops give their body in bf16 what it only reads rounded, so that they round it once.
  void narrowArguments() {
    const unsigned over = entry.getWalk()->getOver().size(),
                   carried = entry.getWalk()->getCarried();
    for (BlockArgument argument : entry.getBody().getArguments()) {
      const unsigned number = argument.getArgNumber();
      if ((number >= over && number < over + carried) || !isF32(argument) || argument.use_empty() ||
          !llvm::all_of(argument.getUsers(), [](Operation *user) {
            return isa<CastOp>(user) && isBF16(user->getResult(0));
          }))
        continue;
      for (Operation *cast : SmallVector<Operation *>(argument.getUsers())) {
        cast->getResult(0).replaceAllUsesWith(argument);
        cast->erase();
      }
      entry.setArgumentType(number, build::typeOf(argument).clone(builder.getBF16Type()));
    }
  }
};

/// f32 everywhere but around products. Every value keeps its f32 form; products read and write
/// rounded twins.
class AutoCast : public Converter {
public:
  AutoCast(EntryOp entry, bool reduced) : Converter(entry), reduced(reduced) {}

protected:
  LogicalResult convert(Operation *op) override {
    switch (classOf(op)) {
    case Precision::Matmul:
      return convertProduct(op);
    case Precision::Move:
      return moveTwins(op);
    default:
      return success();
    }
  }

private:
  struct Twin {
    Value value; ///< in bf16
    bool exact;  ///< whether the f32 value has the same numbers
  };

  LogicalResult convertProduct(Operation *op) {
    // What the program itself has in bf16 stays so: its readers were typed for it.
    if (llvm::any_of(op->getResults(), [&](Value v) { return isF32(v) && wantedExactly(v); }))
      cast<PrecisionOpInterface>(op).yieldF32();
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      if (!isF32(v) || !takesBf16(op, operand.getOperandNumber()))
        continue;
      FailureOr<Value> low = rounded(v);
      if (failed(low))
        return failure();
      operand.set(*low);
    }
    if (reduced && llvm::is_contained(op->getName().getAttributeNames(), "reduced_reduction"))
      op->setAttr("reduced_reduction", builder.getUnitAttr());
    SmallVector<Type> before(op->getResultTypes());
    if (failed(retype(op)))
      return failure();
    ++products;
    for (auto [result, type] : llvm::zip(op->getResults(), before))
      if (result.getType() != type)
        setTwin(result);
    return success();
  }

  /// Lets all users of a result that now is bf16 see it in f32.
  void setTwin(Value low) {
    Value wide = castBehind(low, builder.getF32Type());
    low.replaceAllUsesExcept(wide, wide.getDefiningOp());
    twins[wide] = {low, /*exact=*/true};
  }

  /// Moves the bf16 form of exact values, so that nobody moves the f32 one.
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

  bool allExact(Operation *op) {
    return llvm::any_of(op->getOperands(), hasFloats) &&
           llvm::all_of(op->getOperands(), [&](Value v) {
             auto it = twins.find(v);
             return !hasFloats(v) || (it != twins.end() && it->second.exact);
           });
  }

  /// The same operation on the bf16 form of its operands, behind it.
  FailureOr<Operation *> onTwins(Operation *op) {
    SmallVector<Value> operands;
    for (Value v : op->getOperands()) {
      FailureOr<Value> low = isF32(v) ? rounded(v) : v;
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

  /// The value in bf16, rounded once however many read it. A cast goes as near to the source as it
  /// can: before moves, and into an operation that computes on bf16 numbers anyway.
  FailureOr<Value> rounded(Value v) {
    if (auto it = twins.find(v); it != twins.end())
      return it->second.value;
    Operation *op = v.getDefiningOp();
    // Parameters are joined by lying side by side, and rounded as one.
    bool moves = op && classOf(op) == Precision::Move &&
                 (op->getNumOperands() == 1 || !llvm::any_of(op->getOperands(), isVariable));
    bool computes = op && classOf(op) == Precision::Follow && op->getNumResults() == 1 &&
                    !isa<CastOp>(op) && allExact(op);
    Value low;
    if (moves || computes) {
      FailureOr<Operation *> copy = onTwins(op);
      if (failed(copy))
        return failure();
      low = (*copy)->getResult(0);
    } else {
      low = castBehind(v, builder.getBF16Type());
    }
    twins[v] = {low, /*exact=*/false};
    return low;
  }

  static bool isVariable(Value v) { return v.getDefiningOp<UseOp>() != nullptr; }

  /// Whether a loss, an update or an output reads this value, behind moves and elementwise
  /// operations: gradients of parameters, logits.
  static bool wantedExactly(Value v) {
    SmallVector<Value> work{v};
    DenseSet<Value> seen{v};
    while (!work.empty()) {
      for (Operation *user : work.pop_back_val().getUsers()) {
        Precision precision = classOf(user);
        if (precision == Precision::Exact)
          return true;
        if (precision == Precision::Move || precision == Precision::Follow)
          for (Value result : user->getResults())
            if (seen.insert(result).second)
              work.push_back(result);
      }
    }
    return false;
  }

  bool reduced;
  DenseMap<Value, Twin> twins; ///< by f32 value
};

/// bf16 everywhere but in statistics, sums and losses. Numbers without rank of their own
/// (constants, rank 0) do not widen what they meet.
class PureBF16 : public Converter {
public:
  PureBF16(EntryOp entry, bool reduced) : Converter(entry), reduced(reduced) {}

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
    switch (classOf(op)) {
    case Precision::Exact:
      for (OpOperand &operand : op->getOpOperands())
        if (hasFloats(operand.get()) && !takesBf16(op, operand.getOperandNumber()))
          operand.set(widened(operand.get()));
      return retype(op);
    case Precision::Matmul:
      return convertProduct(op);
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

  LogicalResult convertProduct(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      if (!hasFloats(v))
        continue;
      bool low = takesBf16(op, operand.getOperandNumber());
      operand.set(low ? rounded(v) : widened(v));
    }
    if (reduced && llvm::is_contained(op->getName().getAttributeNames(), "reduced_reduction"))
      op->setAttr("reduced_reduction", builder.getUnitAttr());
    ++products;
    return retype(op);
  }

  LogicalResult convertOther(Operation *op) {
    bool low = false, strong = false, weak = false;
    for (OpOperand &operand : op->getOpOperands()) {
      Value v = operand.get();
      if (!hasFloats(v))
        continue;
      if (!takesBf16(op, operand.getOperandNumber())) {
        operand.set(widened(v));
        continue;
      }
      low |= isBF16(v);
      (isWeak(v) ? weak : strong) |= isF32(v);
    }
    if (!low) {
      if (!strong && weak && classOf(op) <= Precision::Follow)
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
    Value narrow = castBehind(result, builder.getBF16Type());
    result.replaceAllUsesExcept(narrow, narrow.getDefiningOp());
    return success();
  }

  bool isWeak(Value v) {
    return build::shapeOf(v).empty() || weakValues.contains(v) || build::constantValue(v);
  }

  Value rounded(Value v) { return other(v, builder.getBF16Type()); }
  Value widened(Value v) { return other(v, builder.getF32Type()); }
  Value other(Value v, Type element) {
    if (build::typeOf(v).getElementType() == element)
      return v;
    Value &known = others[v];
    if (!known)
      known = castBehind(v, element);
    return known;
  }

  bool reduced;
  DenseSet<Value> weakValues;
  DenseMap<Value, Value> others;
};

struct MixedPrecision : impl::MixedPrecisionBase<MixedPrecision> {
  using MixedPrecisionBase::MixedPrecisionBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    if (policy != "bf16" && policy != "pure_bf16") {
      model.emitOpError() << "has no precision policy '" << policy.getValue()
                          << "'; expected bf16 or pure_bf16";
      return signalPassFailure();
    }
    bool pure = policy == "pure_bf16";
    if (pure)
      storeInBF16(model);
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      std::unique_ptr<Converter> converter;
      if (pure)
        converter = std::make_unique<PureBF16>(entry, reduced);
      else
        converter = std::make_unique<AutoCast>(entry, reduced);
      if (failed(converter->run()))
        return signalPassFailure();
      products += converter->products;
      casts += converter->casts;
    }
    narrowResults(model);
  }

private:
  /// Lets bodies of loops round what all loops over them only use rounded.
  static void narrowResults(ModelOp model) {
    llvm::MapVector<Operation *, SmallVector<LoopOp>> loops; // by body
    model.walk([&](LoopOp loop) { loops[loop.getEntry()].push_back(loop); });
    for (auto &[body, users] : loops) {
      auto entry = cast<EntryOp>(body);
      OpBuilder b(entry.getReturn());
      for (unsigned i = 0; i < entry.getWalk()->getStacked().size(); ++i) {
        auto isRounded = [&](LoopOp loop) {
          return llvm::all_of(loop.getResult(i).getUsers(), [](Operation *user) {
            return isa<CastOp>(user) && isBF16(user->getResult(0));
          });
        };
        OpOperand &result = entry.getReturn()->getOpOperand(i);
        if (!isF32(result.get()) || !llvm::all_of(users, isRounded))
          continue;
        // Behind a reshape the same cast may exist for other uses.
        Value value = result.get();
        auto reshape = value.getDefiningOp<ReshapeOp>();
        Value low =
            build::cast(b, value.getLoc(), reshape ? reshape.getX() : value, b.getBF16Type());
        result.set(build::reshape(b, value.getLoc(), low, build::shapeOf(value)));
        for (LoopOp loop : users) {
          Value whole = loop.getResult(i);
          whole.setType(build::typeOf(whole).clone(b.getBF16Type()));
          for (Operation *user : SmallVector<Operation *>(whole.getUsers())) {
            user->getResult(0).replaceAllUsesWith(whole);
            user->erase();
          }
        }
      }
    }
  }

  /// Parameters and the moments of their updates. Other state stays as it is.
  static void storeInBF16(ModelOp model) {
    auto type = TypeAttr::get(BFloat16Type::get(model.getContext()));
    for (ParamOp param : model.getBody().getOps<ParamOp>())
      param.setDtypeAttr(type);
    for (StateOp state : model.getBody().getOps<StateOp>())
      if (state.getRole() == VariableRole::moment && isa<FloatType>(state.getDtype()))
        state.setDtypeAttr(type);
  }
};

} // namespace
} // namespace hydra
