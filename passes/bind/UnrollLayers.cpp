// hydra-unroll-layers: layers become straight-line code.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_UNROLLLAYERS
#include "passes/Passes.h.inc"

namespace {

struct UnrollLayers : impl::UnrollLayersBase<UnrollLayers> {
  using UnrollLayersBase::UnrollLayersBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    SmallVector<ForOp> loops; // inner ones first
    model.walk([&](ForOp loop) { loops.push_back(loop); });
    for (ForOp loop : loops)
      if (failed(unroll(loop, model.lookupSymbol<StackOp>(loop.getStackAttr()))))
        return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      if (Block &body = entry.getBody().front(); !body.getOps<BoundaryOp>().empty()) {
        OpBuilder b(entry.getReturn());
        BoundaryOp::create(b, entry.getLoc(), IntegerAttr()); // the end of the forward pass
      }
    eraseUnusedBodies(model);
    for (StackOp stack : llvm::make_early_inc_range(model.getBody().getOps<StackOp>()))
      if (failed(expand(stack)))
        return signalPassFailure();
    placeVariables(model);
  }

private:
  /// Parameters and state are where they are read first; what nobody reads is where its name says.
  static void placeVariables(ModelOp model) {
    DenseMap<Attribute, StringRef> paths;
    model.walk([&](UseOp use) {
      paths.try_emplace(use.getVariableAttr().getAttr(), pathOf(use.getLoc()));
    });
    for (Operation &op : model.getBody().front()) {
      if (!isa<ParamOp, StateOp>(op))
        continue;
      StringAttr name = SymbolTable::getSymbolName(&op);
      StringRef path = paths.lookup(name);
      op.setLoc(withPath(op.getLoc(), path.empty() ? name.getValue() : path));
    }
  }

  /// Far beyond any model: loops in loops multiply.
  static constexpr int64_t kMostOperations = 10'000'000;

  static std::string elementPath(StackOp stack, int64_t layer) {
    return (stack.getSymName() + "." + Twine(layer)).str();
  }

  Environment layerEnvironment(int64_t layer) {
    Environment environment;
    environment.values[kLayerSymbol] = Builder(&getContext()).getI64IntegerAttr(layer);
    environment.deferred.insert(kIndexSymbol);
    return environment;
  }

  LogicalResult evaluateAttributes(Operation *op, const Environment &environment) {
    for (NamedAttribute a : op->getAttrs()) {
      if (!hasExpr(a.getValue()) && !isa<InitAttr>(a.getValue()))
        continue;
      FailureOr<Attribute> value =
          evaluate(a.getValue(), environment, [&] { return op->emitOpError(); });
      if (failed(value))
        return failure();
      op->setAttr(a.getName(), *value);
    }
    return success();
  }

  /// The types of what depends on the layer were inferred for the first one.
  static LogicalResult checkTypes(Operation &op, Operation *clone, StringRef path) {
    if (llvm::none_of(op.getAttrs(), [](NamedAttribute a) { return hasExpr(a.getValue()); }))
      return success();
    SmallVector<Type> types;
    if (auto leaf = dyn_cast<LeafOpInterface>(clone)) {
      FailureOr<RankedTensorType> type = leaf.boundType();
      if (failed(type))
        return failure();
      types.push_back(*type);
    } else if (auto value = dyn_cast<InferTypeOpInterface>(clone)) {
      if (failed(value.inferReturnTypes(clone->getContext(), clone->getLoc(), clone->getOperands(),
                                        clone->getDiscardableAttrDictionary(),
                                        clone->getPropertiesStorage(), clone->getRegions(), types)))
        return failure();
    } else {
      return success();
    }
    for (auto [type, first] : llvm::zip(types, clone->getResultTypes()))
      if (type != first)
        return clone->emitOpError() << "is " << type << " in " << path << ", and " << first
                                    << " in the first layer; expected the same in all";
    return success();
  }

  FailureOr<bool> holds(Operation *op, Attribute condition, const Environment &environment) {
    FailureOr<Attribute> value =
        evaluate(condition, environment, [&] { return op->emitOpError(); });
    if (failed(value))
      return failure();
    if (auto truth = dyn_cast<BoolAttr>(*value))
      return truth.getValue();
    return op->emitOpError("has a condition that is neither true nor false");
  }

  /// Marks where layer `layer` of a program begins.
  void markBoundary(OpBuilder &b, ForOp loop, int64_t layer) {
    auto entry = dyn_cast<EntryOp>(loop->getParentOp());
    if (boundaries && entry && entry.isProgram())
      BoundaryOp::create(b, loop.getLoc(), b.getI64IntegerAttr(layer));
  }

  LogicalResult unroll(ForOp loop, StackOp stack) {
    OpBuilder b(loop);
    SmallVector<Value> carried(loop.getInits());
    SmallVector<SmallVector<Value>> rows(loop.getJoined().size());
    for (int64_t layer = 0; layer < stack.getCount(); ++layer) {
      markBoundary(b, loop, layer);
      std::string path = elementPath(stack, layer);
      Location loc = withPath(loop.getLoc(), path);
      Environment environment = layerEnvironment(layer);
      IRMapping mapping;
      for (auto [argument, sequence] :
           llvm::zip(loop.getBody().getArguments(), loop.getSequences()))
        mapping.map(argument, row(b, loc, sequence, layer));
      mapping.map(loop.getCarried(), carried);
      FailureOr<SmallVector<Value>> yielded =
          cloneBlock(b, loop.getBody().front(), mapping, stack, path, environment);
      if (failed(yielded))
        return failure();
      for (auto [joined, value] : llvm::zip(rows, *yielded)) {
        SmallVector<int64_t> shape(build::shapeOf(value));
        shape.insert(shape.begin(), 1);
        joined.push_back(build::reshape(b, loc, value, shape));
      }
      carried.assign(yielded->begin() + rows.size(), yielded->end());
      ++unrolled;
    }
    markBoundary(b, loop, stack.getCount());
    SmallVector<Value> results;
    for (ArrayRef<Value> joined : rows)
      results.push_back(joined.size() == 1
                            ? joined.front()
                            : ConcatOp::create(b, loop.getLoc(), joined, b.getI64IntegerAttr(0)));
    llvm::append_range(results, carried);
    loop.replaceAllUsesWith(results);
    loop.erase();
    return success();
  }

  /// Row `layer` of a sequence, without its dimension.
  static Value row(OpBuilder &b, Location loc, Value sequence, int64_t layer) {
    Value slice = SliceOp::create(b, loc, sequence, b.getI64IntegerAttr(0),
                                  b.getI64IntegerAttr(layer), b.getI64IntegerAttr(1));
    return build::reshape(b, loc, slice, build::shapeOf(sequence).drop_front());
  }

  /// Clones the operations of a block for one layer; returns what it yields.
  FailureOr<SmallVector<Value>> cloneBlock(OpBuilder &b, Block &block, IRMapping &mapping,
                                           StackOp stack, StringRef path,
                                           const Environment &environment) {
    for (Operation &op : block.without_terminator()) {
      if (auto when = dyn_cast<WhenOp>(op)) {
        FailureOr<bool> condition = holds(when, when.getCondition(), environment);
        if (failed(condition))
          return failure();
        Region &taken = *condition ? when.getThenRegion() : when.getElseRegion();
        if (taken.empty())
          continue;
        FailureOr<SmallVector<Value>> values =
            cloneBlock(b, taken.front(), mapping, stack, path, environment);
        if (failed(values))
          return failure();
        mapping.map(when.getResults(), *values);
        continue;
      }
      if (++operations > kMostOperations)
        return op.emitOpError() << "is one of more than " << kMostOperations
                                << " operations when unrolled";
      Operation *clone = b.clone(op, mapping);
      clone->setLoc(withPath(op.getLoc(), joinPaths(path, pathOf(op.getLoc()))));
      if (failed(evaluateAttributes(clone, environment)) || failed(checkTypes(op, clone, path)))
        return failure();
      if (auto loop = dyn_cast<LoopOp>(clone);
          loop && failed(resolveBody(loop, stack, path, environment)))
        return failure();
      auto use = dyn_cast<UseOp>(clone);
      if (Operation *variable = use ? stack.lookupSymbol(use.getVariableAttr()) : nullptr) {
        Attribute condition = variable->getAttr("condition");
        if (condition) {
          FailureOr<bool> present = holds(variable, condition, environment);
          if (failed(present))
            return failure();
          if (!*present)
            return use.emitOpError()
                   << "parameter or state @" << use.getVariable() << " does not exist in " << path;
        }
        use.setVariable((path + "." + use.getVariable()).str());
      }
    }
    return llvm::map_to_vector(block.getTerminator()->getOperands(),
                               [&](Value v) { return mapping.lookupOrDefault(v); });
  }

  /// Whether anything in the body of a loop waits for the number of the layer.
  static bool dependsOnLayer(EntryOp body) {
    WalkResult walked = body.walk([&](Operation *op) {
      auto loop = dyn_cast<LoopOp>(op);
      bool depends =
          isa<WhenOp>(op) || (loop && dependsOnLayer(loop.getEntry())) ||
          llvm::any_of(op->getAttrs(), [](NamedAttribute a) { return hasExpr(a.getValue()); });
      return depends ? WalkResult::interrupt() : WalkResult::advance();
    });
    return walked.wasInterrupted();
  }

  /// Gives a loop of one layer a body of its own where the body depends on the layer.
  LogicalResult resolveBody(LoopOp loop, StackOp stack, StringRef path,
                            const Environment &environment) {
    EntryOp common = loop.getEntry();
    if (!dependsOnLayer(common))
      return success();
    IRMapping mapping;
    EntryOp body = bodyLike(common, common.getSymName(), *common.getScan(), mapping);
    OpBuilder b = OpBuilder::atBlockEnd(&body.getBody().front());
    FailureOr<SmallVector<Value>> results =
        cloneBlock(b, common.getBody().front(), mapping, stack, path, environment);
    if (failed(results))
      return failure();
    build::endLoopBody(body, *results);
    loop.setBodyAttr(FlatSymbolRefAttr::get(body.getSymNameAttr()));
    return success();
  }

  /// Notes which element of its stack a parameter is of.
  static void nameElement(ParamOp param, const std::string &path, int64_t layer) {
    param.setElement(path);
    if (!param.getOrigin())
      return;
    auto [before, after] = param.getOrigin()->split(kLayerPlaceholder);
    param.setOrigin((before + Twine(layer) + after).str());
  }

  /// Replaces a stack by the variables of its elements.
  LogicalResult expand(StackOp stack) {
    OpBuilder b(stack);
    for (int64_t layer = 0; layer < stack.getCount(); ++layer) {
      std::string path = elementPath(stack, layer);
      Environment environment = layerEnvironment(layer);
      for (Operation &variable : stack.getBody().front()) {
        if (Attribute condition = variable.getAttr("condition")) {
          FailureOr<bool> present = holds(&variable, condition, environment);
          if (failed(present))
            return failure();
          if (!*present)
            continue;
        }
        Operation *clone = b.clone(variable);
        clone->removeAttr("condition");
        if (failed(evaluateAttributes(clone, environment)))
          return failure();
        StringRef name = SymbolTable::getSymbolName(&variable);
        SymbolTable::setSymbolName(clone, (path + "." + name).str());
        if (auto param = dyn_cast<ParamOp>(clone))
          nameElement(param, path, layer);
      }
    }
    stack.erase();
    return success();
  }

  int64_t operations = 0;
};

} // namespace
} // namespace hydra
