// hydra-bind: symbols become numbers, types become static.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Limits.h"
#include "passes/CountedNumbers.h"
#include "passes/Passes.h"
#include "passes/bind/AllErrors.h"
#include "passes/bind/Bundles.h"
#include "passes/bind/Calls.h"
#include "passes/bind/Elementwise.h"
#include "passes/bind/Ids.h"
#include "passes/bind/Programs.h"
#include "passes/bind/Ranks.h"
#include "passes/bind/Scans.h"
#include "passes/bind/ValueTags.h"

#include <cmath>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_BIND
#include "passes/Passes.h.inc"

namespace {

struct Bind : impl::BindBase<Bind> {
  using BindBase::BindBase;

  bool allErrors = false; ///< whether what does not follow from an error is looked at behind it

  void runOnOperation() override {
    model = findModel(getOperation());
    if (!model || failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run() {
    scans.loopsFrom = loopsFrom;
    calls.callSites = callSites;
    calls.allErrors = settings.allErrors = allErrors;
    if (model.isBound())
      return model.emitOpError() << "@" << model.getSymName() << " is bound already";
    FailureOr<MeshAttr> ranks = readMesh(model, SmallVector<std::string>(mesh.begin(), mesh.end()));
    if (failed(ranks))
      return failure();
    if (*ranks)
      model.setMeshAttr(*ranks);
    SmallVector<std::string> given;
    if (staticRouting && failed(addStaticChoices(given)))
      return failure();
    llvm::append_range(given, set); // comes later and wins
    if (failed(addSize("B", "batch", batch, given)) || failed(addSize("S", "seq", seq, given)) ||
        failed(settings.resolve(model, preset, given)) || failed(calls.check(model)))
      return failure();
    CallWriter::takeSections(model);
    LogicalResult all = success();
    for (Operation &op : llvm::make_early_inc_range(model.getBody().front()))
      if (endsWith(bindDeclaration(op), all))
        return failure();
    if (failed(chosen.select(model, SmallVector<std::string>(programs.begin(), programs.end()))))
      return failure();
    for (EntryOp entry : llvm::make_early_inc_range(model.getBody().getOps<EntryOp>()))
      if (endsWith(bindEntry(entry), all))
        return failure();
    if (failed(all))
      return failure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      if (endsWith(Programs::returnLabels(entry), all))
        return failure();
      tagValues(entry);
    }
    if (failed(all))
      return failure();
    finish();
    return success();
  }

  /// A dimension that has an option of its own, 0 where it is not given.
  LogicalResult addSize(StringRef symbol, StringRef option, int64_t size,
                        SmallVectorImpl<std::string> &given) {
    if (size == 0)
      return success();
    for (StringRef setting : set)
      if (setting.split('=').first.trim() == symbol)
        return model.emitOpError()
               << "dimension '" << symbol << "' of @" << model.getSymName()
               << " has two values, of '" << setting << "' and of " << option << "=" << size;
    given.push_back((symbol + "=" + Twine(size)).str());
    return success();
  }

  /// Notes in `all` how one of several parts has ended; whether nothing else is to be looked at.
  bool endsWith(LogicalResult part, LogicalResult &all) const {
    if (succeeded(part))
      return false;
    all = failure();
    return !allErrors;
  }

  /// `CHOICE=static` for every choice of the model that can be that.
  LogicalResult addStaticChoices(SmallVectorImpl<std::string> &given) {
    for (SymbolsOp symbols : model.getBody().getOps<SymbolsOp>())
      for (auto [name, options] : llvm::zip(symbols.getNames(), symbols.getOptions()))
        if (auto list = dyn_cast<ArrayAttr>(options);
            list && llvm::is_contained(list.getAsValueRange<StringAttr>(), "static"))
          given.push_back((cast<StringAttr>(name).getValue() + "=static").str());
    if (!given.empty())
      return success();
    return model.emitOpError() << "@" << model.getSymName()
                               << " has no choice that can be 'static', which routing is to be";
  }

  //===-- Declarations ----------------------------------------------------------------------===//

  /// Evaluates every expression among the attributes of an operation.
  LogicalResult evaluateAttributes(Operation *op) {
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

  LogicalResult bindDeclaration(Operation &op) {
    if (isa<GroupOp>(op))
      return evaluateAttributes(&op);
    if (auto stack = dyn_cast<StackOp>(op)) {
      wrong.insert(stack); // until its size is right
      if (failed(evaluateAttributes(stack)))
        return failure();
      if (!isIntOrExpr(stack.getCountAttr()))
        return stack.emitOpError("has a size that is not an integer");
      if (stack.getCount() < 0 || stack.getCount() > kMostLayers)
        return stack.emitOpError() << "@" << stack.getSymName() << " has " << stack.getCount()
                                   << " elements; expected 0 to " << kMostLayers;
      wrong.erase(stack);
      DeferredLayer deferred(environment);
      LogicalResult all = success();
      for (Operation &inner : llvm::make_early_inc_range(stack.getBody().front()))
        if (endsWith(bindVariable(inner), all))
          return failure();
      return all;
    }
    if (!isa<ParamOp, StateOp>(op))
      return success();
    conditions[cast<StringAttr>(op.getAttr(SymbolTable::getSymbolAttrName()))] =
        op.getAttr("condition");
    return bindVariable(op);
  }

  LogicalResult bindVariable(Operation &op) {
    wrong.insert(&op); // until it is right
    if (failed(bindPartsOf(op)))
      return failure();
    wrong.erase(&op);
    return success();
  }

  LogicalResult bindPartsOf(Operation &op) {
    environment.deferred.insert(kIndexSymbol);
    LogicalResult evaluated = evaluateAttributes(&op);
    environment.deferred.erase(kIndexSymbol);
    if (failed(evaluated))
      return failure();
    auto shape = op.getAttrOfType<ArrayAttr>("shape");
    if (hasExpr(shape))
      return op.emitOpError() << "has a shape over '" << kLayerSymbol << "' or '" << kIndexSymbol
                              << "'; expected numbers";
    if (!isIntListOrExprs(shape))
      return op.emitOpError("has a dimension that is not an integer");
    if (std::string problem = checkShape(intList(shape)); !problem.empty())
      return op.emitOpError() << "shape " << problem;
    if (failed(checkIndex(op)))
      return failure();
    Attribute condition = op.getAttr("condition");
    if (!condition || isa<ExprAttr>(condition))
      return success();
    auto truth = dyn_cast<BoolAttr>(condition);
    if (!truth)
      return op.emitOpError("has a condition that is neither true nor false");
    if (truth.getValue())
      op.removeAttr("condition");
    else
      op.erase();
    return success();
  }

  /// `index` counts the elements of a tensor, which only `shuffle` has.
  LogicalResult checkIndex(Operation &op) {
    for (NamedAttribute a : op.getAttrs()) {
      auto init = dyn_cast<InitAttr>(a.getValue());
      bool found = false;
      forEachSymbol(a.getValue(), [&](StringRef name) { found |= name == kIndexSymbol; });
      if (found && !(init && init.getKind() == InitKind::shuffle))
        return op.emitOpError() << "uses '" << kIndexSymbol << "' outside of shuffle(…)";
    }
    return success();
  }

  //===-- Programs --------------------------------------------------------------------------===//

  LogicalResult bindEntry(EntryOp entry) {
    if (model.getMesh() && failed(noteRows(entry)))
      return failure();
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>()) {
      Attribute value = chosen.dim(entry.getSymName(), dim);
      if (!value)
        return entry.emitOpError() << "dimension '" << dim << "' of @" << entry.getSymName()
                                   << " has no value; set " << dim << "=VALUE";
      environment.values[dim] = value;
    }
    const llvm::StringMap<Attribute> saved = environment.values;
    for (const auto &choice : chosen.choices(entry.getSymName()))
      environment.values[choice.first()] = choice.second;
    scans.continued = entry.getRole() == ProgramRole::decode;
    environment.values[kContinuedSymbol] = BoolAttr::get(&getContext(), scans.continued);
    Builder b(&getContext());
    if (Attribute length = scans.continued ? b.getI64IntegerAttr(context)
                                           : environment.values.lookup(kTokensSymbol))
      environment.values[kLengthSymbol] = length;
    LogicalResult result = bindProgram(entry);
    environment.values = saved;
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>())
      environment.values.erase(dim);
    entry.setDimsAttr(ArrayAttr::get(&getContext(), {}));
    return result;
  }

  /// The same once its dimensions and choices have values.
  LogicalResult bindProgram(EntryOp entry) {
    if (failed(evaluateAttributes(entry)))
      return failure();
    for (auto [argument, name, shape, dtype, value] : llvm::zip(
             entry.getBody().getArguments(), entry.getArgNames().getAsValueRange<StringAttr>(),
             entry.getArgShapes(), entry.getArgDtypes(), entry.getArgDefaults())) {
      if (!isIntListOrExprs(shape))
        return entry.emitOpError("has an argument with a dimension that is not an integer");
      if (!isa<UnitAttr>(value) && (!isRealOrExpr(value) || !std::isfinite(realValue(value))))
        return entry.emitOpError("has an argument with a default that is not a finite number");
      if (!isa<UnitAttr>(value) && isCountedNumber(name, cast<TypeAttr>(dtype).getValue()))
        return entry.emitOpError() << "has an argument '" << name
                                   << "' of i32, a name for what runs count or draw; expected "
                                      "another";
      if (std::string problem = checkShape(intList(cast<ArrayAttr>(shape))); !problem.empty())
        return entry.emitOpError() << "argument shape " << problem;
      argument.setType(
          RankedTensorType::get(intList(cast<ArrayAttr>(shape)), cast<TypeAttr>(dtype).getValue()));
    }
    if (failed(bindBlock(entry.getBody().front())) ||
        failed(dropMissingOutputs(entry.getReturn())) ||
        failed(dropMissingUpdates(entry.getReturn())))
      return failure();
    eraseUnusedScalars(entry);
    noteIds(entry);
    return success();
  }

  /// Drops the outputs that this configuration does not have.
  LogicalResult dropMissingOutputs(ReturnOp end) {
    if (!end.getConditions())
      return success();
    SmallVector<Attribute> names;
    SmallVector<Value> values;
    for (auto [name, value, condition] :
         llvm::zip_equal(end.getOutputNames(), end.getOutputs(), *end.getConditions())) {
      auto truth = dyn_cast<BoolAttr>(condition);
      if (!truth && !isa<UnitAttr>(condition))
        return end.emitOpError() << "has a condition of output " << name
                                 << " that is neither true nor false";
      if (truth && !truth.getValue())
        continue;
      names.push_back(name);
      values.push_back(value);
    }
    llvm::append_range(values, end.getUpdates());
    end.getValuesMutable().assign(values);
    end.setOutputNamesAttr(ArrayAttr::get(&getContext(), names));
    end.removeConditionsAttr();
    return success();
  }

  /// Drops the new values of state that this configuration does not have: the model's, or that of
  /// this program alone.
  LogicalResult dropMissingUpdates(ReturnOp end) {
    SmallVector<Attribute> updated;
    SmallVector<Value> values(end.getOutputs());
    for (auto [symbol, value] :
         llvm::zip(end.getUpdated().getAsRange<FlatSymbolRefAttr>(), end.getUpdates())) {
      if (!model.lookupSymbol(symbol))
        continue;
      if (Attribute condition = conditions.lookup(symbol.getAttr())) {
        FailureOr<Attribute> holds =
            evaluate(condition, environment, [&] { return end.emitOpError(); });
        if (failed(holds))
          return failure();
        if (*holds == BoolAttr::get(&getContext(), false))
          continue;
      }
      updated.push_back(symbol);
      values.push_back(value);
    }
    end.getValuesMutable().assign(values);
    end.setUpdatedAttr(ArrayAttr::get(&getContext(), updated));
    return success();
  }

  /// Drops per-step scalars that this configuration never reads.
  void eraseUnusedScalars(EntryOp entry) {
    for (unsigned i = entry.getBody().getNumArguments(); i-- > 0;)
      if (entry.getDefault(i) && entry.getBody().getArgument(i).use_empty())
        entry.eraseArgument(i);
  }

  LogicalResult bindBlock(Block &block) {
    LogicalResult all = success();
    if (endsWith(calls.writeOut(block), all) ||
        endsWith(bindOperations(block.begin(), block.end()), all))
      return failure();
    return all;
  }

  /// Whether binding has failed to give a value its type, or a part of a bundle.
  static bool isUnknown(Value value) {
    if (auto bundle = value.getDefiningOp<BundleOp>())
      return llvm::any_of(bundle.getFields(), isUnknown);
    return isUnbound(value.getType());
  }

  bool readsWrong(Operation *op) {
    if (wrong.empty())
      return false;
    if (auto use = dyn_cast<UseOp>(op))
      return wrong.contains(use.lookup());
    auto loop = dyn_cast<ForOp>(op);
    return loop && wrong.contains(model.lookupSymbol(loop.getStackAttr()));
  }

  /// Whether an operation reads what an error has left without a type, also in the body of a scan,
  /// which is written out as a whole: what could be said of it follows from that error.
  bool followsFromError(Operation &op) {
    if (isa<CallOp>(op) || readsWrong(&op) || llvm::any_of(op.getOperands(), isUnknown))
      return true;
    if (!isa<ScanOp, PrefixScanOp>(op))
      return false;
    return op.getRegion(0)
        .walk([&](Operation *inner) {
          const bool readsUnknown = llvm::any_of(inner->getOperands(), [&](Value operand) {
            return operand.getParentRegion()->isProperAncestor(&op.getRegion(0)) &&
                   isUnknown(operand);
          });
          return readsWrong(inner) || readsUnknown ? WalkResult::interrupt()
                                                   : WalkResult::advance();
        })
        .wasInterrupted();
  }

  LogicalResult bindOperations(Block::iterator begin, Block::iterator end) {
    LogicalResult all = success();
    for (Operation &op : llvm::make_early_inc_range(llvm::make_range(begin, end)))
      if (endsWith(allErrors && followsFromError(op) ? failure() : bindOperation(op), all))
        return failure();
    return all;
  }

  /// What it is given may be erased behind it.
  LogicalResult bindOperation(Operation &op) {
    if (failed(evaluateAttributes(&op)))
      return failure();
    if (isa<LinearGeluOp>(op)) // which not every target has
      return op.emitOpError("is for hydra-fuse-epilogues to make; expected hydra.linear and "
                            "hydra.gelu");
    if (auto when = dyn_cast<WhenOp>(op))
      return bindWhen(when);
    if (auto loop = dyn_cast<ForOp>(op))
      return bindFor(loop);
    if (auto field = dyn_cast<FieldOp>(op))
      return bundles::take(field);
    if (isa<ScanOp, PrefixScanOp>(op)) {
      // In scans inside as well: what they read outside is read outside of this one too.
      if (failed(calls.writeOutInside(&op)))
        return failure();
      return scans.writeOut(&op);
    }
    if (isa<BundleOp, YieldOp>(op))
      return success();
    if (failed(bundles::checkNone(&op)))
      return failure();
    if (auto leaf = dyn_cast<LeafOpInterface>(op))
      return bindLeaf(leaf);
    if (auto dropout = dyn_cast<DropoutOp>(op))
      return bindDropout(dropout);
    if (auto attention = dyn_cast<AttentionOp>(op))
      return bindAttention(attention);
    if (auto value = dyn_cast<InferTypeOpInterface>(op))
      return bindValue(value);
    return success();
  }

  /// A switch that is off leaves nothing behind.
  LogicalResult bindDropout(DropoutOp dropout) {
    if (failed(bindValue(cast<InferTypeOpInterface>(dropout.getOperation()))))
      return failure();
    if (!hasExpr(dropout.getPAttr()) && dropout.getP() == 0.0) {
      dropout.getY().replaceAllUsesWith(dropout.getX());
      dropout.erase();
    }
    return success();
  }

  LogicalResult bindAttention(AttentionOp attention) {
    if (failed(bindValue(cast<InferTypeOpInterface>(attention.getOperation()))))
      return failure();
    const auto isOff = [](Attribute part) {
      return part && !hasExpr(part) && realValue(part) == 0.0;
    };
    if (isOff(attention.getDropoutAttr()))
      attention.removeDropoutAttr();
    if (isOff(attention.getDropkeyAttr()))
      attention.removeDropkeyAttr();
    return success();
  }

  LogicalResult bindLeaf(LeafOpInterface op) {
    FailureOr<RankedTensorType> type = boundTypeOf(op);
    if (failed(type))
      return failure();
    op->getResult(0).setType(*type);
    ++boundValues;
    return success();
  }

  LogicalResult bindValue(InferTypeOpInterface op) {
    if (op->hasTrait<Elementwise>()) {
      if (failed(elementwise::typeNumbers(op)))
        return failure();
      FailureOr<unsigned> made = elementwise::broadcastOperands(op);
      if (failed(made))
        return failure();
      broadcasts += *made;
    }
    SmallVector<Type> types;
    if (failed(op.inferReturnTypes(&getContext(), op.getLoc(), op->getOperands(),
                                   op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
                                   op->getRegions(), types)) ||
        failed(checkTensors(op.getLoc(), op->getName().getStringRef(), "result", types)))
      return failure();
    for (auto [result, type] : llvm::zip(op->getResults(), types))
      result.setType(type);
    boundValues += types.size();
    return success();
  }

  LogicalResult bindWhen(WhenOp when) {
    LogicalResult all = success();
    if (isa<ExprAttr>(when.getCondition())) { // depends on the layer
      for (Region *region : when.getRegions())
        if (!region->empty() && endsWith(bindBlock(region->front()), all))
          return failure();
      if (failed(all))
        return failure();
      Operation *yield = when.getThenRegion().front().getTerminator();
      if (Region &other = when.getElseRegion(); !other.empty())
        for (auto [like, value] :
             llvm::zip(yield->getOperands(), other.front().getTerminator()->getOperands()))
          if (failed(bundles::checkSameFields(other.front().getTerminator(), like, value)))
            return failure();
      when = cast<WhenOp>(bundles::withFlatResults(when, yield->getOperands()));
      for (auto [result, value] : llvm::zip(when.getResults(), yield->getOperands()))
        result.setType(value.getType());
      return success();
    }
    auto truth = dyn_cast<BoolAttr>(when.getCondition());
    if (!truth)
      return when.emitOpError("has a condition that is neither true nor false");
    Region &taken = truth.getValue() ? when.getThenRegion() : when.getElseRegion();
    if (!taken.empty()) {
      if (endsWith(bindBlock(taken.front()), all))
        return failure();
      Operation *yield = taken.front().getTerminator();
      when->replaceAllUsesWith(yield->getOperands());
      yield->erase();
      when->getBlock()->getOperations().splice(when->getIterator(), taken.front().getOperations());
    }
    when.erase();
    return all;
  }

  LogicalResult bindFor(ForOp loop) {
    const int64_t count = model.lookupSymbol<StackOp>(loop.getStackAttr()).getCount();
    const SmallVector<Value> inits(loop.getInits());
    bundles::open(loop);
    for (auto [argument, sequence] :
         llvm::zip(loop.getBody().getArguments(), loop.getSequences())) {
      auto type = cast<RankedTensorType>(sequence.getType());
      if (type.getRank() == 0 || type.getShape()[0] != count)
        return loop.emitOpError() << "goes over " << type << "; @" << loop.getStack() << " has "
                                  << count << " elements";
      argument.setType(RankedTensorType::get(type.getShape().drop_front(), type.getElementType()));
    }
    const size_t carried = loop.getInits().size();
    for (auto [argument, init] : llvm::zip(loop.getCarried(), loop.getInits()))
      argument.setType(init.getType());
    DeferredLayer deferred(environment);
    if (failed(bindBlock(loop.getBody().front()))) {
      if (inits.size() == loop.getInits().size()) // what is carried keeps its type, whatever else
        for (auto [result, init] : llvm::zip(loop.getResults().take_back(carried), loop.getInits()))
          result.setType(init.getType());
      return failure();
    }
    Operation *yield = loop.getBody().front().getTerminator();
    for (auto [init, value] : llvm::zip(inits, yield->getOperands().take_back(inits.size())))
      if (failed(bundles::checkSameFields(yield, init, value)))
        return failure();
    loop = cast<ForOp>(bundles::withFlatResults(loop, yield->getOperands()));
    for (auto [result, init] : llvm::zip(loop.getResults().take_back(carried), loop.getInits()))
      result.setType(init.getType());
    for (auto [result, yielded] : llvm::zip(loop.getJoined(), yield->getOperands())) {
      auto row = cast<RankedTensorType>(yielded.getType());
      SmallVector<int64_t> shape(row.getShape());
      shape.insert(shape.begin(), count);
      if (std::string problem = checkShape(shape); !problem.empty())
        return yield->emitOpError() << "joins rows to a sequence whose shape " << problem;
      result.setType(RankedTensorType::get(shape, row.getElementType()));
    }
    for (auto [i, init, yielded] :
         llvm::enumerate(loop.getInits(), yield->getOperands().take_back(carried)))
      if (init.getType() != yielded.getType())
        return yield->emitOpError() << "carried value " << i << " changes type from "
                                    << init.getType() << " to " << yielded.getType();
    return success();
  }

  void finish() {
    Builder b(&getContext());
    NamedAttrList values, bound;
    for (auto &[name, value] : environment.values)
      values.set(name, value);
    bound.set("symbols", values.getDictionary(&getContext()));
    if (!preset.empty())
      bound.set("preset", b.getStringAttr(preset));
    model.setBoundAttr(bound.getDictionary(&getContext()));
    for (Operation &op : llvm::make_early_inc_range(model.getBody().front()))
      if (isa<SymbolsOp, DeriveOp, PresetOp, DefOp>(op))
        op.erase();
    bundles::eraseAll(model);
  }

  /// While alive, `layer` stays symbolic.
  struct DeferredLayer {
    explicit DeferredLayer(Environment &environment)
        : environment(environment), outermost(environment.deferred.insert(kLayerSymbol).second) {}
    ~DeferredLayer() {
      if (outermost)
        environment.deferred.erase(kLayerSymbol);
    }
    Environment &environment;
    bool outermost;
  };

  ModelOp model;
  Environment environment;
  Settings settings{environment};
  Programs chosen{settings};
  DenseSet<Operation *> wrong;                ///< parameters, state and stacks that have errors
  DenseMap<StringAttr, Attribute> conditions; ///< of parameters and state outside of stacks
  CallWriter calls{environment};
  ScanWriter scans{environment, [this](Block::iterator begin, Block::iterator end) {
                     return bindOperations(begin, end);
                   }};
};

} // namespace

std::unique_ptr<Pass> createBindWithAllErrors(BindOptions options) {
  auto bind = std::make_unique<Bind>(std::move(options));
  bind->allErrors = true;
  return bind;
}

} // namespace hydra
