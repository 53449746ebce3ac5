// Questions about the machine that a module is compiled for.
#include "dialects/hydra/Target.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace hydra {

bool TargetAttr::has(StringRef feature) {
  return getFeatures() && llvm::is_contained(getFeatures().getAsValueRange<StringAttr>(), feature);
}

double TargetAttr::rate(StringRef name) {
  auto value = getRates() ? getRates().getAs<FloatAttr>(name) : FloatAttr();
  return value ? value.getValueAsDouble() : 0.0;
}

TargetAttr targetOf(Operation *op) {
  for (Operation *at = op; at; at = at->getParentOp())
    if (auto target = at->getAttrOfType<TargetAttr>(kTargetAttr))
      return target;
  return TargetAttr::get(op->getContext(), "cpu", "cpu", "host", 0, 0, 0, {}, {});
}

} // namespace hydra
