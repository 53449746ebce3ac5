// hydra-freeze: parameters that are not trained.
#include "passes/Parameters.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FREEZE
#include "passes/Passes.h.inc"

namespace {

struct Freeze : impl::FreezeBase<Freeze> {
  using FreezeBase::FreezeBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model || failed(freeze(model)))
      signalPassFailure();
  }

private:
  LogicalResult freeze(ModelOp model) {
    const SmallVector<std::string> names(patterns.begin(), patterns.end());
    FailureOr<SmallVector<ParamOp>> matched = parametersMatching(model, names, "--freeze");
    if (failed(matched))
      return failure();
    for (ParamOp param : *matched) {
      frozen += !param.getFrozen();
      param.setFrozen(true);
    }
    auto params = model.getBody().getOps<ParamOp>();
    if (llvm::all_of(params, [](ParamOp param) { return param.getFrozen(); }))
      return model.emitOpError() << "--freeze: leaves no parameter of @" << model.getSymName()
                                 << " to train; all " << llvm::range_size(params) << " are frozen";
    return success();
  }
};

} // namespace
} // namespace hydra
