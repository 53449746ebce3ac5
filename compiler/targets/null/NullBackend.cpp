// Plans whatever there is, for tests of planning.
#include "compiler/targets/null/NullBackend.h"

using namespace mlir;

namespace hydra {

namespace {

struct NullBackend : TargetBackend {
  StringRef name() const override { return "null"; }
  planfile::TargetKind fileKind() const override { return planfile::TargetKind::cpu; }
  bool hasCollectives() const override { return true; }

  FailureOr<CompiledKernels> compileKernels(plan::PlanModuleOp module, const Target &,
                                            const CodeOptions &) const override {
    return module.emitError("is for no machine: ask for reports, or for the plan as text");
  }
};

} // namespace

const TargetBackend &nullBackend() {
  static const NullBackend backend;
  return backend;
}

} // namespace hydra
