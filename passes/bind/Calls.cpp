// Calls of definitions and arithmetic are written out in place.
#include "passes/bind/Calls.h"

#include "mlir/IR/IRMapping.h"

#include <functional>

using namespace mlir;

namespace hydra {

LogicalResult CallWriter::check(ModelOp model) {
  llvm::MapVector<Operation *, uint64_t> calls; // that inlining the definition writes out
  DenseSet<Operation *> open;
  std::function<LogicalResult(Operation *, uint64_t &)> count = [&](Operation *parent,
                                                                    uint64_t &sum) {
    WalkResult result = parent->walk([&](CallOp call) {
      auto callee = model.lookupSymbol<DefOp>(call.getCalleeAttr());
      if (open.contains(callee)) {
        call.emitOpError() << "definition @" << call.getCallee() << " calls itself";
        return WalkResult::interrupt();
      }
      if (!calls.count(callee)) {
        constexpr size_t kMostDepth = 64;
        if (open.size() == kMostDepth) {
          call.emitOpError() << "lies more than " << kMostDepth << " definitions deep";
          return WalkResult::interrupt();
        }
        uint64_t inside = 0;
        open.insert(callee);
        if (failed(count(callee, inside)))
          return WalkResult::interrupt();
        open.erase(callee);
        calls[callee] = inside;
      }
      sum += 1 + calls[callee];
      constexpr uint64_t kMostCalls = 65536;
      if (sum <= kMostCalls)
        return WalkResult::advance();
      call.emitOpError() << "is one of more than " << kMostCalls << " calls";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  };
  uint64_t sum = 0;
  return count(model, sum);
}

//===-- Parameters --------------------------------------------------------------------------===//

/// Operators and functions of an expression.
static size_t sizeOf(Attribute expr) {
  auto e = dyn_cast<ExprAttr>(expr);
  if (!e)
    return 0;
  size_t size = !e.getArgs().empty();
  for (Attribute a : e.getArgs())
    size += sizeOf(a);
  return size;
}

FailureOr<Attribute> CallWriter::parameter(CallOp call, StringRef name, SymbolKind kind,
                                           Attribute given) {
  // What is known only further inside stays symbolic: it is as the caller means it there.
  SmallVector<StringRef> later;
  for (StringRef symbol : {StringRef(kLayerSymbol), StringRef(kRowsSymbol)})
    if (!environment.values.contains(symbol) && environment.deferred.insert(symbol).second)
      later.push_back(symbol);
  FailureOr<Attribute> value = evaluate(given, environment, [&] { return call.emitOpError(); });
  for (StringRef symbol : later)
    environment.deferred.erase(symbol);
  if (failed(value))
    return failure();
  MLIRContext *context = call.getContext();
  if (isa<ExprAttr>(*value)) {
    constexpr size_t kMostOperators = 128;
    if (sizeOf(*value) > kMostOperators)
      return call.emitOpError() << "gives '" << name << "' an expression of more than "
                                << kMostOperators << " operators";
    return kind == SymbolKind::real ? Attribute(ExprAttr::get(context, "real", *value)) : *value;
  }
  std::string want = checkSymbolValue(*value, kind, ArrayAttr::get(context, {}));
  if (!want.empty())
    return call.emitOpError() << "gives '" << name << "' a value that is not " << want;
  if (kind == SymbolKind::real)
    return Attribute(Builder(context).getF64FloatAttr(realValue(*value)));
  return value;
}

FailureOr<llvm::StringMap<Attribute>> CallWriter::parameters(CallOp call, DefOp callee) {
  llvm::StringMap<Attribute> given, values;
  for (auto [name, value] :
       llvm::zip(call.getParamNames().getAsValueRange<StringAttr>(), call.getParamValues()))
    given[name] = value;
  for (auto [name, kind, otherwise] :
       llvm::zip(callee.getParamNames().getAsValueRange<StringAttr>(),
                 callee.getParamKinds().getAsRange<SymbolKindAttr>(), callee.getParamDefaults())) {
    Attribute value = given.lookup(name);
    FailureOr<Attribute> evaluated =
        parameter(call, name, kind.getValue(), value ? value : otherwise);
    if (failed(evaluated))
      return failure();
    values[name] = *evaluated;
  }
  return values;
}

static void substituteParameters(Region &body, const llvm::StringMap<Attribute> &values) {
  if (values.empty())
    return;
  body.walk([&](Operation *op) {
    for (NamedAttribute a : op->getAttrs())
      if (hasExpr(a.getValue()))
        op->setAttr(a.getName(),
                    substitute(a.getValue(), [&](StringRef name) { return values.lookup(name); }));
  });
}

//===-- Writing out -------------------------------------------------------------------------===//

/// Replaces an operation by the operations of a block, which yield its results.
static void writeInstead(Operation *op, Block &body) {
  Operation *yield = body.getTerminator();
  op->replaceAllUsesWith(yield->getOperands());
  yield->erase();
  op->getBlock()->getOperations().splice(op->getIterator(), body.getOperations());
  op->erase();
}

/// Puts operations into a part of the model. What a `for` repeats is in elements of its stack
/// instead.
static void placeInside(Block &block, StringRef path) {
  for (Operation &op : block) {
    op.setLoc(withPath(op.getLoc(), joinPaths(path, pathOf(op.getLoc()))));
    if (!isa<ForOp>(op))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          placeInside(inner, path);
  }
}

static Location withoutTags(Location loc) {
  auto tagged = dyn_cast<FusedLocWith<ScopeAttr>>(loc);
  return tagged ? FusedLoc::get(loc.getContext(), tagged.getLocations()) : loc;
}

/// Puts the place of a call behind those of the operations that it becomes.
static void noteCallSite(Block &block, Location call) {
  block.walk([&](Operation *op) {
    Location loc = CallSiteLoc::get(withoutTags(op->getLoc()), withoutTags(call));
    if (ScopeAttr tags = scopeOf(op->getLoc()))
      loc = FusedLoc::get({loc}, tags, op->getContext());
    op->setLoc(loc);
  });
}

/// Puts the operations of a block into the sections that it has, within one around them.
static void takeSections(Block &block, StringRef around) {
  std::string path = around.str();
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto section = dyn_cast<SectionOp>(op)) {
      path = joinPaths(around, section.getSection());
      section.erase();
      continue;
    }
    if (!path.empty())
      op.setLoc(withPath(op.getLoc(), path));
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        takeSections(inner, isa<ForOp>(op) ? StringRef() : StringRef(path));
  }
}

void CallWriter::takeSections(ModelOp model) {
  for (Operation &op : model.getBody().front())
    if (isa<DefOp, EntryOp>(op))
      hydra::takeSections(op.getRegion(0).front(), "");
}

LogicalResult CallWriter::writeOut(Block &block) {
  LogicalResult all = success();
  for (LetOp let : llvm::make_early_inc_range(block.getOps<LetOp>()))
    writeInstead(let, let.getBody().front());
  for (CallOp call : llvm::make_early_inc_range(block.getOps<CallOp>())) {
    auto model = call->getParentOfType<ModelOp>();
    auto callee = model.lookupSymbol<DefOp>(call.getCalleeAttr());
    FailureOr<llvm::StringMap<Attribute>> values = parameters(call, callee);
    if (failed(values)) {
      all = failure();
      if (allErrors)
        continue;
      return failure();
    }
    // In front of the call, so that what is inside finds its model.
    auto copy = cast<DefOp>(OpBuilder(call).clone(*callee));
    substituteParameters(copy.getBody(), *values);
    Block &body = copy.getBody().front();
    LogicalResult written = writeOut(body);
    if (succeeded(written) || allErrors) {
      if (callSites)
        noteCallSite(body, call.getLoc());
      placeInside(body, joinPaths(pathOf(call.getLoc()), call.getCallee()));
      for (auto [argument, value] : llvm::zip(body.getArguments(), call.getArguments()))
        argument.replaceAllUsesWith(value);
      writeInstead(call, body);
    }
    copy.erase();
    if (failed(written)) {
      all = failure();
      if (!allErrors)
        return failure();
    }
  }
  return all;
}

LogicalResult CallWriter::writeOutInside(Operation *op) {
  auto blockThatCalls = [&] {
    Block *found = nullptr;
    op->walk([&](Operation *inner) {
      if (!isa<CallOp, LetOp>(inner) || isa<LetOp>(inner->getParentOp()))
        return WalkResult::advance();
      found = inner->getBlock();
      return WalkResult::interrupt();
    });
    return found;
  };
  while (Block *block = blockThatCalls())
    if (failed(writeOut(*block)))
      return failure();
  return success();
}

} // namespace hydra
