// hydra-cache: programs that compute whole sequences become programs that read on.
#include "passes/Passes.h"
#include "passes/cache/KeptAxes.h"
#include "passes/cache/NextToken.h"
#include "passes/cache/SequenceCache.h"
#include "passes/precision/Policy.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_CACHE
#include "passes/Passes.h.inc"

namespace {

struct Cache : impl::CacheBase<Cache> {
  using CacheBase::CacheBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.addExtension(
        +[](MLIRContext *context, HydraDialect *) { attachCacheRules(*context); });
  }

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    SmallVector<EntryOp> programs;
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      if (entry.getRole() == ProgramRole::decode)
        programs.push_back(entry);
    if (!precisionPolicy(policy)) {
      model.emitOpError() << "has no precision policy '" << policy.getValue() << "'; expected "
                          << precisionPolicyNames();
      return signalPassFailure();
    }
    if (!programs.empty() && failed(run(programs)))
      signalPassFailure();
  }

private:
  LogicalResult run(ArrayRef<EntryOp> programs) {
    for (EntryOp entry : programs)
      if (failed(check(entry)))
        return failure();
    for (EntryOp entry : programs)
      eraseDead(entry);
    // With more tokens than one a call tells where they are; with the fewest, what sequences have.
    auto byTokens = [](EntryOp a, EntryOp b) { return tokensOf(a) < tokensOf(b); };
    EntryOp longest = *llvm::max_element(programs, byTokens);
    EntryOp shortest = *llvm::min_element(programs, byTokens);
    if (tokensOf(longest) < 2)
      return longest.emitOpError(
          "reads one token a call; expected another program that reads more");
    if (context < tokensOf(longest))
      return longest.emitOpError() << "reads " << tokensOf(longest)
                                   << " tokens a call; expected at most the context, " << context;
    FailureOr<KeptAxes> axes = findAxes(longest);
    if (failed(axes))
      return failure();
    // Marks kept alive what other scans carry and nothing needs.
    for (EntryOp entry : programs) {
      if (failed(dropMarks(entry, *axes)))
        return failure();
      eraseDead(entry);
    }
    axes = findAxes(longest);
    if (failed(axes))
      return failure();
    for (EntryOp entry : programs)
      if (failed(checkNumbers(entry, longest, *axes)))
        return failure();
    FailureOr<KeptAxes> batches = findBatches(shortest, *axes);
    if (failed(batches))
      return failure();
    for (EntryOp entry : programs)
      if (failed(rewrite(entry, longest, *axes, *batches)))
        return failure();
    return success();
  }

  LogicalResult check(EntryOp entry) {
    auto fails = [&](const Twine &text) {
      return entry.emitOpError() << "@" << entry.getSymName() << " " << text;
    };
    Block &block = entry.getBody().front();
    for (unsigned i = 1; i < block.getNumArguments(); ++i)
      if (StringRef name = cast<StringAttr>(entry.getArgNames()[i]).getValue();
          name == SequenceCache::kPosition || name == kSettingsArgument || name == kDrawArgument)
        return fails("has an argument '" + name + "', which hydra-cache adds");
      else if (!entry.getDefault(i))
        return fails("reads on; expected no other argument than tokens and numbers of a step");
    if (block.getNumArguments() == 0 || build::typeOf(block.getArgument(0)).getRank() != 2 ||
        !build::typeOf(block.getArgument(0)).getElementType().isInteger(32))
      return fails("reads on; expected tokens [B, S] as its first argument");
    ReturnOp end = entry.getReturn();
    if (!end.getUpdated().empty())
      return fails("reads on; expected that it gives no state new values");
    if (end.getOutputNames().size() != 1 || build::typeOf(end.getOutputs()[0]).getRank() != 3)
      return fails("reads on; expected one result, the scores [B, S, V]");
    const StringRef result = cast<StringAttr>(end.getOutputNames()[0]).getValue();
    if (result == kTokenResult)
      return fails("returns '" + result + "', which hydra-cache adds");
    return success();
  }

  static void eraseDead(EntryOp entry) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  /// Of scans over something else than tokens, and of those inside others.
  static LogicalResult dropMarks(EntryOp entry, ArrayRef<int64_t> axes) {
    const SmallVector<Operation *> found = mayKeepOf(entry, axes);
    if (found.size() != axes.size())
      return keepsOther(entry);
    DenseSet<Operation *> kept;
    for (auto [op, axis] : llvm::zip(found, axes))
      if (auto begin = dyn_cast<ScanBeginOp>(op); begin && axis >= 0)
        for (Operation *mark : {op, endOf(begin).getOperation()})
          kept.insert(mark);
    entry.walk([&](Operation *op) {
      if (isa<ScanBeginOp, ScanEndOp>(op) && !kept.contains(op)) {
        op->replaceAllUsesWith(op->getOperands());
        op->erase();
      }
    });
    return success();
  }

  //===-- The programs ------------------------------------------------------------------------===//

  LogicalResult rewrite(EntryOp entry, EntryOp longest, ArrayRef<int64_t> axes,
                        ArrayRef<int64_t> batches) {
    const SmallVector<Operation *> found = mayKeepOf(entry, axes);
    if (found.size() != axes.size())
      return keepsOther(entry);
    SequenceCache cache(entry, context, tokensOf(longest), narrowType());
    for (auto [number, op, axis, batch] : llvm::enumerate(found, axes, batches)) {
      if (axis < 0)
        continue;
      cache.startAt(op, number, batch);
      if (failed(readOn(op, cache, axis)))
        return failure();
      ++kept;
    }
    if (failed(returnNextToken(entry, cache, found.size())))
      return failure();
    cache.finish();
    eraseDead(entry);
    return success();
  }

  /// What the policy holds values in; null: f32.
  Type narrowType() {
    const PrecisionPolicy *chosen = precisionPolicy(policy);
    return chosen && chosen->holdsValues() ? elementType(&getContext(), chosen->format) : Type();
  }

  LogicalResult readOn(Operation *op, SequenceCache &cache, int64_t axis) {
    if (auto begin = dyn_cast<ScanBeginOp>(op))
      return readOn(begin, cache);
    if (auto iota = dyn_cast<IotaOp>(op))
      return readOn(iota, cache);
    FailureOr<Value> value = cast<CacheOpInterface>(op).readOn(cache, axis);
    if (failed(value))
      return failure();
    op->getResult(0).replaceAllUsesWith(*value);
    op->erase();
    return success();
  }

  /// What is carried into the first chunk was carried out of the last one of the call before.
  static LogicalResult readOn(ScanBeginOp begin, SequenceCache &cache) {
    if (begin.getChunk() != 1 && begin.getChunk() != cache.tokens())
      return begin.emitOpError() << "scans chunks of " << begin.getChunk()
                                 << " tokens, and calls of " << cache.tokens()
                                 << " end inside of one; expected chunk = 1 or chunk = S";
    ScanEndOp end = endOf(begin);
    auto name = [](size_t i) { return ("carried" + Twine(i)).str(); };
    for (auto [i, value] : llvm::enumerate(begin.getValues())) {
      Value given = value;
      if (static_cast<int64_t>(i) >= begin.getSequences()) {
        FailureOr<Value> earlier = cache.earlier(name(i - begin.getSequences()), value);
        if (failed(earlier))
          return failure();
        given = *earlier;
      }
      begin.getResult(i).replaceAllUsesWith(given);
    }
    cache.builder().setInsertionPoint(end);
    for (auto [i, value] : llvm::enumerate(end.getValues())) {
      if (static_cast<int64_t>(i) >= end.getSequences())
        cache.keep(name(i - end.getSequences()), value);
      end.getResult(i).replaceAllUsesWith(value);
    }
    begin.erase();
    end.erase();
    return success();
  }

  LogicalResult readOn(IotaOp iota, SequenceCache &cache) {
    OpBuilder &b = cache.builder();
    const Location loc = cache.loc();
    const RankedTensorType type = build::typeOf(iota.getResult());
    if (iota.getAxis() == 0 || type.getDimSize(0) != cache.batch())
      return iota.emitOpError() << "counts positions of " << cache.batch()
                                << " sequences together; expected the batch as its first dimension";
    if (type.getDimSize(iota.getAxis()) != cache.tokens())
      return iota.emitOpError() << "counts " << type.getDimSize(iota.getAxis())
                                << " positions in a call of " << cache.tokens()
                                << " tokens; expected one for each";
    for (Operation *user : iota->getUsers())
      if (auto table = dyn_cast<EmbeddingOp>(user);
          table && build::shapeOf(table.getTable())[0] < context)
        return table.emitOpError() << "knows " << build::shapeOf(table.getTable())[0]
                                   << " positions; the context is " << context.getValue();
    SmallVector<int64_t> aligned(type.getRank(), 1);
    aligned[0] = cache.batch();
    aligned[iota.getAxis()] = cache.tokens();
    Value positions = build::reshape(b, loc, cache.positions(), aligned);
    Value all = build::broadcast(b, loc, positions, type.getShape());
    iota.getResult().replaceAllUsesWith(build::cast(b, loc, all, type.getElementType()));
    iota.erase();
    return success();
  }
};

} // namespace
} // namespace hydra
