// hydra-to-plan: values become buffers, operations become steps.
#include "passes/Passes.h"
#include "passes/lower/ProgramWriter.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_TOPLAN
#include "passes/Passes.h.inc"

namespace {

struct ToPlan : impl::ToPlanBase<ToPlan> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    OpBuilder at(model);
    PlanWriter writer(model, at);
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      if (!entry.isProgram())
        continue;
      ProgramWriter program(writer, entry);
      if (failed(program.run()))
        return signalPassFailure();
      steps += program.steps;
      inPlace += program.inPlace;
    }
    kernels += writer.kernelCount();
    model.erase();
  }
};

} // namespace
} // namespace hydra
