// hydra-quantize-weights: weights that nothing changes are held as integers of 8 bits, each row
// with a scale, or of 4 bits, each group of neighbours with one.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/PackedNumbers.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_QUANTIZEWEIGHTS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-quantize-weights";

/// Bytes of a row that kernels load at a time, of which a row is a multiple.
constexpr int64_t kLoadBytes = 16;

Value behindCasts(Value v) {
  while (auto cast = v.getDefiningOp<CastOp>())
    v = cast.getX();
  return v;
}

/// The parameters whose rows a concatenation joins, cast or as they are; none where it has anything
/// else, or joins columns.
SmallVector<ParamOp> joinedRows(ConcatOp concat) {
  SmallVector<ParamOp> parameters;
  for (Value part : concat.getParts())
    parameters.push_back(parameterOf(behindCasts(part)));
  return concat.getAxis() == 0 && llvm::all_of(parameters, [](ParamOp p) { return bool(p); })
             ? parameters
             : SmallVector<ParamOp>();
}

/// A weight as programs read it now: integers [rows, columns] and a scale [rows], or bytes [rows,
/// columns / 2] and a scale [rows, groups].
struct Weight {
  Value integers, scale;
};

/// The numbers [.., columns] of bytes [.., columns / 2] and scales [.., groups]; exact in f32 and
/// in `type`. Of a byte plus 128 what 16 goes into is the upper number plus 8, and what is left of
/// it the lower one plus 8: each for one half of the group.
Value unpack(OpBuilder &b, Location loc, const Weight &packed, Type type) {
  SmallVector<int64_t> groups(build::shapeOf(packed.scale)), halves = groups;
  halves.append({2, support::kInt4Bytes});
  const auto plus = [&](Value x, double number) -> Value {
    return AddOp::create(b, loc, x, build::constant(b, loc, build::typeOf(x), number));
  };
  const auto times = [&](Value x, double number) -> Value {
    return MulOp::create(b, loc, x, build::constant(b, loc, build::typeOf(x), number));
  };
  const auto inHalves = [&](Value x, int64_t columns) -> Value {
    SmallVector<int64_t> shape = groups;
    shape.append({1, columns});
    x = build::reshape(b, loc, build::cast(b, loc, x, b.getBF16Type()), shape); // exact
    return build::cast(b, loc, build::broadcast(b, loc, x, halves), b.getF32Type());
  };
  Value bytes = plus(inHalves(packed.integers, support::kInt4Bytes), 128.0);
  Value upper = build::cast(b, loc, times(bytes, 0.0625), b.getI32Type());
  upper = build::cast(b, loc, upper, b.getF32Type());
  Value lower = AddOp::create(b, loc, bytes, times(upper, -16.0));
  Value isUpper = IotaOp::create(b, loc, build::typeOf(lower), b.getI64ArrayAttr(halves),
                                 b.getI64IntegerAttr(groups.size()), TypeAttr::get(b.getF32Type()));
  Value more = MulOp::create(b, loc, isUpper, SubOp::create(b, loc, upper, lower));
  Value numbers = plus(AddOp::create(b, loc, lower, more), -8.0);
  numbers = MulOp::create(b, loc, numbers, inHalves(packed.scale, 1));
  groups.back() *= support::kInt4Group;
  return build::reshape(b, loc, build::cast(b, loc, numbers, type), groups);
}

struct QuantizeWeights : impl::QuantizeWeightsBase<QuantizeWeights> {
  using QuantizeWeightsBase::QuantizeWeightsBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model || failed(checkBits(model)) || failed(findKept(model)))
      return signalPassFailure();
    findWeights(model);
    if (weights.empty()) {
      model.emitOpError() << "has no weight to hold in int" << bits.getValue()
                          << ": linear layers of parameters that nothing else reads, with a "
                             "multiple of "
                          << leastColumns() << " inputs, and that --weight-keep does not name";
      return signalPassFailure();
    }
    for (ParamOp param : weights)
      if (failed(hold(param)))
        return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      rewrite(entry.getBody().front());
  }

private:
  LogicalResult checkBits(ModelOp model) {
    if (bits == 8 || bits == 4)
      return success();
    return model.emitOpError() << "is to have weights of " << bits.getValue()
                               << " bits; expected 8 or 4";
  }

  bool isPacked() const { return bits == 4; }
  /// Columns of a weight are a multiple of so many.
  int64_t leastColumns() const { return kLoadBytes * 8 / bits; }

  LogicalResult findKept(ModelOp model) {
    FailureOr<SmallVector<ParamOp>> matched =
        keep.empty() ? SmallVector<ParamOp>()
                     : parametersMatching(model, SmallVector<std::string>(keep.begin(), keep.end()),
                                          "--weight-keep");
    if (failed(matched))
      return failure();
    kept.insert(matched->begin(), matched->end());
    return success();
  }

  //===-- Which parameters ------------------------------------------------------------------===//

  void findWeights(ModelOp model) {
    for (auto param : model.getBody().getOps<ParamOp>())
      if (isa<FloatType>(param.getDtype()) && param.getShape().size() == 2 && !param.getUnit() &&
          param.getBoundType().getDimSize(1) % leastColumns() == 0 && !kept.contains(param))
        weights.insert(param);
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      dropChanged(model, entry.getReturn());
    // One that falls out takes along those that it is joined with.
    for (bool changed = true; changed;) {
      changed = false;
      for (EntryOp entry : model.getBody().getOps<EntryOp>())
        for (auto use : entry.getBody().front().getOps<UseOp>())
          if (ParamOp param = parameterOf(use); weights.contains(param) && !isRead(use))
            changed |= weights.remove(param);
    }
    // What is only looked up has few of its rows read, and stays as it is.
    DenseSet<Operation *> multiplied;
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto linear : entry.getBody().front().getOps<LinearOp>())
        for (ParamOp param : partsOf(linear.getW()))
          multiplied.insert(param);
    weights.remove_if([&](ParamOp param) { return !multiplied.contains(param); });
  }

  void dropChanged(ModelOp model, ReturnOp end) {
    auto drop = [&](FlatSymbolRefAttr symbol) {
      if (auto param = model.lookupSymbol<ParamOp>(symbol.getValue()))
        weights.remove(param);
    };
    for (auto symbol : end.getUpdated().getAsRange<FlatSymbolRefAttr>())
      drop(symbol);
    for (unsigned i = 0; i < end.getOutputNames().size(); ++i)
      if (FlatSymbolRefAttr param = end.gradientOf(i))
        drop(param);
  }

  /// Whether all that reads a value reads it as a weight or a table, itself, cast or joined with
  /// others.
  bool isRead(Value value) const {
    return llvm::all_of(value.getUses(), [&](OpOperand &at) {
      Operation *reader = at.getOwner();
      if (auto linear = dyn_cast<LinearOp>(reader))
        return at.getOperandNumber() == 1 && !linear.getCompute() && !linear.getQuantize();
      if (isa<EmbeddingOp>(reader))
        return at.getOperandNumber() == 1;
      if (isa<CastOp>(reader))
        return isRead(reader->getResult(0));
      auto concat = dyn_cast<ConcatOp>(reader);
      if (!concat)
        return false;
      const SmallVector<ParamOp> parts = joinedRows(concat);
      return !parts.empty() && isRead(concat.getY()) &&
             llvm::all_of(parts, [&](ParamOp part) { return weights.contains(part); });
    });
  }

  static SmallVector<ParamOp> partsOf(Value weight) {
    weight = behindCasts(weight);
    if (ParamOp param = parameterOf(weight))
      return {param};
    auto concat = weight.getDefiningOp<ConcatOp>();
    return concat ? joinedRows(concat) : SmallVector<ParamOp>();
  }

  //===-- What becomes of them --------------------------------------------------------------===//

  LogicalResult hold(ParamOp param) {
    const std::string name = (param.getSymName() + ".scale").str();
    if (param->getParentOfType<ModelOp>().lookupSymbol(name))
      return param.emitOpError() << "is to have a scale @" << name << ", which is there already";
    OpBuilder b(param);
    b.setInsertionPointAfter(param);
    const ArrayRef<int64_t> shape = param.getBoundType().getShape();
    const ArrayAttr scales = isPacked() ? b.getI64ArrayAttr(groupScaleShape(shape))
                                        : b.getArrayAttr({param.getShape()[0]});
    StateOp::create(b, madeBy(kPass, param.getLoc()), b.getStringAttr(name), scales,
                    isPacked() ? Type(b.getBF16Type()) : b.getF32Type(),
                    InitAttr::get(b.getContext(), InitKind::zeros, {}), StringAttr(), Attribute(),
                    param.getSymNameAttr(), VariableRole::scale);
    param.setDtypeAttr(TypeAttr::get(b.getIntegerType(bits)));
    ++held;
    return success();
  }

  void rewrite(Block &block) {
    read.clear();
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto linear = dyn_cast<LinearOp>(op); linear && isHeld(linear.getW()))
        multiply(linear);
      else if (auto rows = dyn_cast<EmbeddingOp>(op); rows && isHeld(rows.getTable()))
        lookUp(rows);
    }
    eraseDead(block);
  }

  bool isHeld(Value weight) const {
    const SmallVector<ParamOp> parts = partsOf(weight);
    return !parts.empty() && weights.contains(parts.front());
  }

  /// Of a variable, or of joined ones; once in a program, where it was read before.
  Weight weightOf(Value value) {
    value = behindCasts(value);
    Weight &weight = read[value];
    if (weight.integers)
      return weight;
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(value);
    const Location loc = madeBy(kPass, value.getLoc());
    if (ParamOp param = parameterOf(value)) {
      StateOp scale = scaleOf(param);
      weight = {UseOp::create(b, loc, param.getBoundType(), param.getSymName()),
                UseOp::create(b, loc, scale.getBoundType(), scale.getSymName())};
      return weight;
    }
    SmallVector<Value> integers, scales;
    for (Value part : value.getDefiningOp<ConcatOp>().getParts()) {
      const Weight of = weightOf(part); // a copy: the table may grow
      integers.push_back(of.integers);
      scales.push_back(of.scale);
    }
    const IntegerAttr axis = b.getI64IntegerAttr(0);
    return read[value] = {ConcatOp::create(b, loc, integers, axis),
                          ConcatOp::create(b, loc, scales, axis)};
  }

  /// Of more rows than a sweep over the weight takes, a matmul reads it widened. Of 8 bits that is
  /// exact, and its sums are scaled, and rounded with the bias, as `hydra.scaled_linear` does.
  void multiply(LinearOp linear) {
    const Weight weight = weightOf(linear.getW());
    OpBuilder b(linear);
    const Location loc = madeBy(kPass, linear.getLoc());
    const RankedTensorType type = build::typeOf(linear.getY()), x = build::typeOf(linear.getX());
    const int64_t rows = x.getNumElements() / x.getShape().back();
    Value y;
    if (rows <= support::kMostInt8Rows) {
      y = ScaledLinearOp::create(b, loc, linear.getX(), weight.integers, weight.scale,
                                 linear.getB(), TypeAttr::get(type.getElementType()));
    } else if (isPacked()) {
      y = LinearOp::create(b, loc, linear.getX(), unpack(b, loc, weight, x.getElementType()),
                           linear.getB(), TypeAttr::get(type.getElementType()));
    } else {
      Value w = build::cast(b, loc, weight.integers, x.getElementType());
      y = LinearOp::create(b, loc, linear.getX(), w, Value(), TypeAttr::get(b.getF32Type()));
      y = MulOp::create(b, loc, y, build::broadcast(b, loc, weight.scale, type.getShape()));
      if (linear.getB()) {
        Value bias = build::cast(b, loc, linear.getB(), b.getF32Type());
        y = AddOp::create(b, loc, y, build::broadcast(b, loc, bias, type.getShape()));
      }
      y = build::cast(b, loc, y, type.getElementType());
    }
    linear.getY().replaceAllUsesWith(y);
    linear.erase();
    ++matmuls;
  }

  void lookUp(EmbeddingOp rows) {
    const Weight table = weightOf(rows.getTable());
    OpBuilder b(rows);
    const Location loc = madeBy(kPass, rows.getLoc());
    const RankedTensorType type = build::typeOf(rows.getX());
    const int64_t ids = build::shapeOf(table.scale)[0];
    Value x = EmbeddingOp::create(b, loc, rows.getTokens(), table.integers);
    Value scale = isPacked() ? table.scale : build::reshape(b, loc, table.scale, {ids, 1});
    scale = EmbeddingOp::create(b, loc, rows.getTokens(), scale);
    if (isPacked()) {
      rows.getX().replaceAllUsesWith(unpack(b, loc, {x, scale}, type.getElementType()));
      rows.erase();
      return;
    }
    x = build::cast(b, loc, x, b.getF32Type());
    x = MulOp::create(b, loc, x, build::broadcast(b, loc, scale, type.getShape()));
    rows.getX().replaceAllUsesWith(build::cast(b, loc, x, type.getElementType()));
    rows.erase();
  }

  DenseSet<Operation *> kept;
  llvm::SetVector<ParamOp> weights;
  DenseMap<Value, Weight> read; ///< of the program that is rewritten
};

} // namespace
} // namespace hydra
