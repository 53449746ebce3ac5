// hydra-select-quantized: which linear layers multiply 8-bit operands, and in which formats.
#include "dialects/hydra/Build.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SELECTQUANTIZED
#include "passes/Passes.h.inc"

namespace {

/// Beside patterns: what is kept without any.
constexpr StringLiteral kDefault = "default";

struct SelectQuantized : impl::SelectQuantizedBase<SelectQuantized> {
  using SelectQuantizedBase::SelectQuantizedBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model || failed(findKept(model)))
      return signalPassFailure();
    MLIRContext *context = &getContext();
    const Type operands = Float8E4M3FNType::get(context);
    Type gradient = operands;
    if (format == "hybrid") {
      gradient = Float8E5M2Type::get(context);
    } else if (format != "e4m3") {
      model.emitOpError() << "has no 8-bit format '" << format.getValue()
                          << "'; expected hybrid or e4m3";
      return signalPassFailure();
    }
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      if (!entry.isProgram() || entry.programRole() == ProgramRole::decode)
        continue;
      for (auto op : entry.getBody().front().getOps<QuantizableOpInterface>())
        if (Value weight = op.getWeight();
            weight && takesRounded(op) && isQuantized(parametersOf(weight))) {
          op.quantizeTo(operands, gradient);
          ++layers;
        }
    }
  }

private:
  /// Not so what is to be multiplied in more bits.
  static bool takesRounded(Operation *op) {
    return cast<PrecisionOpInterface>(op).precisionClass() == Precision::Matmul;
  }

  LogicalResult findKept(ModelOp model) {
    if (llvm::equal(keep, ArrayRef<StringRef>{"none"}))
      return success();
    SmallVector<std::string> patterns;
    llvm::copy_if(keep, std::back_inserter(patterns),
                  [](const std::string &text) { return text != kDefault; });
    if (!patterns.empty()) {
      FailureOr<SmallVector<ParamOp>> matched = parametersMatching(model, patterns, "--fp8-keep");
      if (failed(matched))
        return failure();
      kept.insert(matched->begin(), matched->end());
    }
    if (keep.empty() || patterns.size() < keep.size()) {
      keepEnds(model);
      keepRouters(model);
    }
    return success();
  }

  /// Whether it makes of numbers which rows go where, and nothing that has a derivative.
  static bool chooses(Operation &op) {
    auto cost = dyn_cast<CostOpInterface>(op);
    return cost && cost.costClass() == OpClass::gather_scatter &&
           llvm::none_of(op.getResults(), [](Value result) {
             return isa<FloatType>(getElementTypeOrSelf(result.getType()));
           });
  }

  /// Parameters of matmuls whose results are the scores that choices are made by.
  void keepRouters(ModelOp model) {
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      if (entry.isProgram())
        for (Operation &op : entry.getBody().front())
          if (chooses(op))
            for (Value scores : op.getOperands())
              keepScores(scores);
  }

  /// Up to the next matmuls, through what is computed for each score by itself or among them:
  /// values that have as many numbers. Behind moves alone there may be more, of what is joined.
  void keepScores(Value scores) {
    const int64_t count = build::typeOf(scores).getNumElements();
    llvm::SetVector<Value> work;
    work.insert(scores);
    for (size_t i = 0; i < work.size(); ++i) {
      auto op = work[i].getDefiningOp<PrecisionOpInterface>();
      if (!op)
        continue;
      if (auto layer = dyn_cast<QuantizableOpInterface>(op.getOperation())) {
        if (Value weight = layer.getWeight())
          for (ParamOp param : parametersOf(weight))
            kept.insert(param);
        continue;
      }
      for (Value operand : op->getOperands())
        if (op.precisionClass() == Precision::Move ||
            build::typeOf(operand).getNumElements() == count)
          work.insert(operand);
    }
  }

  /// Of each stack the parameters of the first and of the last element, and those in none.
  void keepEnds(ModelOp model) {
    struct Element {
      StringRef stack;
      int64_t number = 0;
    };
    auto elementOf = [](ParamOp param) -> std::optional<Element> {
      Element element;
      StringRef number;
      std::tie(element.stack, number) = param.getElement().value_or("").rsplit('.');
      return number.getAsInteger(10, element.number) ? std::nullopt : std::optional(element);
    };
    llvm::StringMap<int64_t> last; // by stack
    for (auto param : model.getBody().getOps<ParamOp>())
      if (std::optional<Element> element = elementOf(param))
        last[element->stack] = std::max(last[element->stack], element->number);
    for (auto param : model.getBody().getOps<ParamOp>()) {
      std::optional<Element> element = elementOf(param);
      if (!element || element->number == 0 || element->number == last[element->stack])
        kept.insert(param);
    }
  }

  /// What is joined is large if its parts are, and stays if one of them does.
  bool isQuantized(ArrayRef<ParamOp> params) const {
    return !params.empty() && llvm::all_of(params, [&](ParamOp param) {
      return !kept.contains(param) &&
             llvm::all_of(cast<RankedTensorType>(param.getBoundType()).getShape(),
                          [&](int64_t size) { return size >= least; });
    });
  }

  DenseSet<Operation *> kept;
};

} // namespace
} // namespace hydra
