// hydra-set-target: the machine that the module is for becomes an attribute of it.
#include "dialects/hydra/Target.h"
#include "passes/Passes.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SETTARGET
#include "passes/Passes.h.inc"

namespace {

struct SetTarget : impl::SetTargetBase<SetTarget> {
  using SetTargetBase::SetTargetBase;

  void runOnOperation() override {
    Attribute attribute = parseAttribute(target, &getContext());
    if (!isa_and_present<TargetAttr>(attribute)) {
      getOperation().emitError() << "hydra-set-target takes a #hydra.target, not '" << target << "'";
      return signalPassFailure();
    }
    getOperation()->setAttr(kTargetAttr, attribute);
  }
};

} // namespace
} // namespace hydra
