// hydra-select-precision: in which formats layers multiply that a user's policy names.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Parameters.h"
#include "passes/Passes.h"
#include "passes/precision/Policy.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SELECTPRECISION
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral kFlag = "--layer-precision";

struct SelectPrecision : impl::SelectPrecisionBase<SelectPrecision> {
  using SelectPrecisionBase::SelectPrecisionBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model || failed(readRules(model)))
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      selectIn(entry.getBody().front());
    for (const Rule &rule : rules)
      if (!rule.used) {
        model.emitOpError() << kFlag << ": '" << rule.text
                            << "' changes no layer: none multiplies by what it names, or others "
                               "before it name the same";
        return signalPassFailure();
      }
  }

private:
  struct Rule {
    StringRef text;
    Type format;
    DenseSet<Operation *> params;
    bool used = false;
  };

  LogicalResult readRules(ModelOp model) {
    for (const std::string &text : rulesOption) {
      std::optional<LayerPrecision> read = LayerPrecision::parse(text);
      if (!read)
        return model.emitOpError() << kFlag << ": '" << text << "' is no rule; expected "
                                   << kLayerPrecisionSyntax;
      FailureOr<SmallVector<ParamOp>> matched = parametersMatching(model, read->pattern, kFlag);
      if (failed(matched))
        return failure();
      Rule rule{
          .text = text, .format = elementType(&getContext(), read->format), .params = {}};
      rule.params.insert(matched->begin(), matched->end());
      rules.push_back(std::move(rule));
    }
    return success();
  }

  /// What nobody reads is no layer.
  void selectIn(Block &block) {
    DenseSet<Operation *> unread;
    for (Operation &op : llvm::reverse(block)) {
      if (isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>() &&
          llvm::all_of(op.getUsers(), [&](Operation *user) { return unread.contains(user); }))
        unread.insert(&op);
      else if (auto layer = dyn_cast<PrecisionOpInterface>(op))
        select(layer);
    }
  }

  /// Of what multiplies by a parameter, the first rule that names one.
  void select(PrecisionOpInterface op) {
    if (op.precisionClass() != Precision::Matmul)
      return;
    SmallVector<ParamOp> params;
    for (Value operand : op->getOperands())
      if (build::shapeOf(operand).size() > 1) // no bias
        llvm::append_range(params, parametersOf(operand));
    for (Rule &rule : rules)
      if (llvm::any_of(params, [&](ParamOp param) { return rule.params.contains(param); })) {
        if (!op.multiplyIn(rule.format))
          continue;
        rule.used = true;
        ++layers;
        return;
      }
  }

  SmallVector<Rule> rules;
};

} // namespace
} // namespace hydra
