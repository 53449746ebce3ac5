// hydra-round-gradients: ranks send gradients in fewer bits than they are summed up in.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"
#include "passes/precision/Policy.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_ROUNDGRADIENTS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-round-gradients";

/// The sums over ranks in one program that make gradients of parameters.
class GradientSums {
public:
  explicit GradientSums(EntryOp entry) {
    ReturnOp end = entry.getReturn();
    auto model = entry->getParentOfType<ModelOp>();
    for (unsigned i = 0; i < end.getOutputNames().size(); ++i)
      if (end.gradientOf(i))
        add(end.getValues()[i]);
    for (auto [symbol, value] :
         llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates())) {
      Operation *variable = model.lookupSymbol(symbol.getAttr());
      auto state = dyn_cast<StateOp>(variable);
      if (!state || state.getRole() == VariableRole::gradient)
        add(value);
    }
    for (Operation &op : entry.getBody().front())
      if (isa<AllReduceOp, ReduceScatterOp>(op) && isPart(op.getOperand(0)) &&
          build::typeOf(op.getOperand(0)).getNumElements() > 1)
        sums.insert(&op);
    // What makes a new value, element by element, from sums of as many elements.
    while (!work.empty()) {
      Value v = work.pop_back_val();
      Operation *op = v.getDefiningOp();
      if (!op)
        continue;
      if (isa<AllReduceOp, ReduceScatterOp>(op)) {
        if (Value before = sumBefore(op))
          add(before);
        else
          sums.insert(op);
        continue;
      }
      if (precisionOf(op) != Precision::Move && !isa<RowWiseOpInterface>(op))
        continue;
      const int64_t least = build::typeOf(v).getNumElements();
      for (Value operand : op->getOperands())
        if (precisionOf(op) == Precision::Move || build::typeOf(operand).getNumElements() >= least)
          add(operand);
    }
  }

  llvm::SetVector<Operation *> sums;

private:
  /// Whether a value is what a rank has added up over micro-batches.
  static bool isPart(Value v) {
    auto use = v.getDefiningOp<UseOp>();
    auto state = use ? dyn_cast<StateOp>(use.lookup()) : StateOp();
    return state && state.isPart();
  }

  /// What a sum over ranks adds up, if those are sums over another axis: pieces of these go over
  /// this one, as they are. Null if they are not.
  static Value sumBefore(Operation *sum) {
    Value x = sum->getOperand(0);
    if (isa<ReduceScatterOp>(sum))
      x = build::behindReshapes(x);
    return isa_and_nonnull<AllReduceOp, ReduceScatterOp>(x.getDefiningOp()) ? x : Value();
  }

  /// Numbers by themselves (losses, norms) cost no time to send.
  void add(Value v) {
    if (build::typeOf(v).getNumElements() > 1 && seen.insert(v).second)
      work.push_back(v);
  }

  SmallVector<Value> work;
  DenseSet<Value> seen;
};

/// Rounds values as near to where they are made as it can.
class Rounding {
public:
  explicit Rounding(Type format) : format(format) {}

  Value rounded(Value v) {
    if (Value known = twins.lookup(v))
      return known;
    Value &twin = twins[v];
    Operation *op = v.getDefiningOp();
    if (auto cast = dyn_cast_or_null<CastOp>(op);
        cast && build::typeOf(cast.getX()).getElementType() == format)
      return twin = cast.getX(); // was widened to be summed up
    OpBuilder b(v.getContext());
    b.setInsertionPointAfterValue(v);
    if (op && precisionOf(op) == Precision::Move && op->getNumResults() == 1) {
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(
            isa<FloatType>(build::typeOf(operand).getElementType()) ? rounded(operand) : operand);
      Operation *copy = b.clone(*op);
      copy->setOperands(operands);
      copy->getResult(0).setType(build::typeOf(v).clone(format));
      return twins[v] = copy->getResult(0);
    }
    CastOp cast = CastOp::create(b, madeBy(kPass, v.getLoc()), v, TypeAttr::get(format));
    casts.push_back(cast);
    return twins[v] = cast;
  }

  /// Matmuls that were to write f32 for nothing but a sum write rounded numbers at once. What is
  /// dead must be gone.
  void foldIntoMatmuls() {
    for (CastOp cast : casts) {
      auto matmul = cast.getX().getDefiningOp<PrecisionOpInterface>();
      if (!matmul || !cast.getX().hasOneUse() || !matmul.yieldIn(format))
        continue;
      Value result = cast.getX();
      result.setType(build::typeOf(result).clone(format));
      cast.getY().replaceAllUsesWith(result);
      cast.erase();
    }
  }

private:
  Type format;
  DenseMap<Value, Value> twins; ///< by f32 value
  SmallVector<CastOp> casts;
};

struct RoundGradients : impl::RoundGradientsBase<RoundGradients> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    Builder b(&getContext());
    const Type format = b.getBF16Type(), f32 = b.getF32Type();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      if (!entry.isProgram())
        continue;
      Rounding rounding(format);
      for (Operation *sum : GradientSums(entry).sums) {
        if (!build::typeOf(sum->getOperand(0)).getElementType().isF32())
          continue;
        sum->setOperand(0, rounding.rounded(sum->getOperand(0)));
        sum->setAttr("sum", TypeAttr::get(f32));
        ++sums;
      }
      eraseDead(entry.getBody().front());
      rounding.foldIntoMatmuls();
    }
  }
};

} // namespace
} // namespace hydra
