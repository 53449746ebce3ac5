// Registration of the dialect, and the defaults of its interfaces.
#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/PartitionRules.h"
#include "runtime/support/Integers.h"

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

int64_t elementBytes(Type element) { return support::ceilDiv(element.getIntOrFloatBitWidth(), 8); }

int64_t bytesOf(Type type) {
  auto t = cast<ShapedType>(type);
  return t.getNumElements() * elementBytes(t.getElementType());
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

StringRef pathOf(Location loc) {
  ScopeAttr scope = scopeOf(loc);
  return scope ? scope.getPath() : StringRef();
}

namespace {

/// The tags of a location, to be changed.
struct Scope {
  std::string path;
  Phase phase = Phase::forward;
  std::optional<Category> category;
  std::string pass;

  explicit Scope(Location loc) {
    if (ScopeAttr scope = scopeOf(loc)) {
      path = scope.getPath();
      phase = scope.getPhase();
      category = scope.getCategory();
      pass = scope.getPass();
    }
  }
  /// The location with these tags; of several places all are kept.
  Location on(Location loc) const {
    MLIRContext *context = loc.getContext();
    auto fused = dyn_cast<FusedLocWith<ScopeAttr>>(loc);
    return FusedLoc::get(fused ? fused.getLocations() : ArrayRef(loc),
                         ScopeAttr::get(context, path, phase, category, pass), context);
  }
};

} // namespace

Location withPath(Location loc, StringRef path) {
  Scope scope(loc);
  scope.path = path;
  return scope.on(loc);
}

Location withPhase(Location loc, Phase phase) {
  Scope scope(loc);
  scope.phase = phase;
  return scope.on(loc);
}

Location withCategory(Location loc, Category category) {
  Scope scope(loc);
  scope.category = category;
  return scope.on(loc);
}

Location madeBy(StringRef pass, Location loc) {
  Scope scope(loc);
  scope.pass = pass;
  return scope.on(loc);
}

std::string joinPaths(StringRef outer, StringRef inner) {
  return (outer + (outer.empty() || inner.empty() ? "" : ".") + inner).str();
}

Attribute ScopeAttr::parse(AsmParser &parser, Type) {
  std::string path, pass;
  FailureOr<Phase> phase = failure();
  std::optional<Category> category;
  if (parser.parseLess() || parser.parseString(&path) || parser.parseComma() ||
      failed(phase = FieldParser<Phase>::parse(parser)))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    FailureOr<Category> given = FieldParser<Category>::parse(parser);
    if (failed(given))
      return {};
    category = *given;
  }
  if (succeeded(parser.parseOptionalKeyword("by")) && parser.parseString(&pass))
    return {};
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), path, *phase, category, pass);
}

void ScopeAttr::print(AsmPrinter &p) const {
  p << '<';
  p.printString(getPath());
  p << ", " << stringifyPhase(getPhase());
  if (getCategory())
    p << ", " << stringifyCategory(*getCategory());
  if (!getPass().empty()) {
    p << " by ";
    p.printString(getPass());
  }
  p << '>';
}

} // namespace hydra
