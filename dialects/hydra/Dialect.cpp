// Registration of the dialect, and the defaults of its interfaces.
#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/PartitionRules.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/hydra/HydraDialect.cpp.inc"
#include "dialects/hydra/HydraEnums.cpp.inc"

#include "dialects/hydra/HydraInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/hydra/HydraTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/hydra/HydraAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/hydra/HydraOps.cpp.inc"

namespace hydra {

void HydraDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/hydra/HydraTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/hydra/HydraAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/hydra/HydraOps.cpp.inc"
      >();
  attachPartitionRules(*getContext());
}

int64_t resultElements(Operation *op) {
  int64_t n = 0;
  for (Type t : op->getResultTypes())
    n += cast<RankedTensorType>(t).getNumElements();
  return n;
}

int64_t bytesOf(Type type) {
  auto t = cast<RankedTensorType>(type);
  return t.getNumElements() * ((t.getElementTypeBitWidth() + 7) / 8);
}

int64_t operandAndResultBytes(Operation *op) {
  int64_t n = 0;
  for (Type t : op->getOperandTypes())
    n += bytesOf(t);
  for (Type t : op->getResultTypes())
    n += bytesOf(t);
  return n;
}

Exactness exactnessByFlops(Operation *op) {
  int64_t elements = 0;
  for (Type type : op->getResultTypes())
    elements = std::max(elements, cast<RankedTensorType>(type).getNumElements());
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost && cost.flops() >= 2 * elements ? Exactness::OfWholeNumbers : Exactness::Always;
}

//===-- Locations ---------------------------------------------------------------------------===//

ScopeAttr scopeOf(Location loc) {
  auto fused = dyn_cast<FusedLocWith<ScopeAttr>>(loc);
  return fused ? fused.getMetadata() : ScopeAttr();
}

static Location rescope(Location loc, StringRef path, Phase phase) {
  auto fused = dyn_cast<FusedLocWith<ScopeAttr>>(loc);
  Location inner = fused ? fused.getLocations().front() : loc;
  return FusedLoc::get(loc.getContext(), {inner}, ScopeAttr::get(loc.getContext(), path, phase));
}

Location withLayer(Location loc, StringRef path) {
  ScopeAttr scope = scopeOf(loc);
  return rescope(loc, path, scope ? scope.getPhase() : Phase::forward);
}

Location withPhase(Location loc, Phase phase) {
  ScopeAttr scope = scopeOf(loc);
  return rescope(loc, scope ? scope.getPath() : "", phase);
}

} // namespace hydra
