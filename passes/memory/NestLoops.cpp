// hydra-nest-loops: what a loop carries is kept for some iterations only.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_NESTLOOPS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-nest-loops";

struct NestLoops : impl::NestLoopsBase<NestLoops> {
  using NestLoopsBase::NestLoopsBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    if (chunks < 1) {
      model.emitOpError() << "cannot keep what is carried every " << chunks.getValue() << " chunks";
      return signalPassFailure();
    }
    FailureOr<SmallVector<EntryOp>> entries =
        findPrograms(model, SmallVector<std::string>(programs.begin(), programs.end()));
    if (failed(entries))
      return signalPassFailure();
    for (EntryOp entry : *entries)
      for (LoopOp loop : llvm::make_early_inc_range(entry.getBody().front().getOps<LoopOp>()))
        nest(entry, loop);
    eraseUnusedBodies(model);
  }

private:
  void nest(EntryOp program, LoopOp loop) {
    EntryOp body = loop.getEntry();
    const int64_t count = body.getScan()->getCount();
    int64_t inner = std::min<int64_t>(chunks, count);
    while (count % inner != 0)
      --inner;
    if (inner == 1 || inner == count)
      return;
    EntryOp &outer = outers[body];
    if (!outer)
      outer = outerBody(program, body, inner);
    OpBuilder b(loop);
    loop.replaceAllUsesWith(
        LoopOp::create(b, madeBy(kPass, loop.getLoc()), outer, loop.getInputs()));
    loop.erase();
    ++nested;
  }

  /// A body that runs another one so many times.
  static EntryOp outerBody(EntryOp program, EntryOp body, int64_t inner) {
    ScanAttr scan = *body.getScan();
    auto times = [&](int64_t count) {
      return ScanAttr::get(body.getContext(), count, scan.getOver(), scan.getCarried(),
                           scan.getStacked(), scan.getReverse());
    };
    IRMapping mapping;
    EntryOp part = bodyLike(body, (body.getSymName() + "_part").str(), times(inner), mapping);
    OpBuilder b = OpBuilder::atBlockEnd(&part.getBody().front());
    for (Operation &op : body.getBody().front().without_terminator())
      b.clone(op, mapping);
    build::endLoopBody(part, llvm::map_to_vector(body.getReturn().getOutputs(),
                                                 [&](Value v) { return mapping.lookup(v); }));

    SmallVector<RankedTensorType> wholes;
    for (BlockArgument argument : part.getBody().getArguments())
      wholes.push_back(part.wholeType(argument));
    EntryOp outer =
        build::loopBody(program, (body.getSymName() + "_parts").str(), madeBy(kPass, body.getLoc()),
                        times(scan.getCount() / inner), wholes);
    b.setInsertionPointToEnd(&outer.getBody().front());
    auto loop =
        LoopOp::create(b, madeBy(kPass, body.getLoc()), part, outer.getBody().getArguments());
    build::endLoopBody(outer, loop.getResults());
    return outer;
  }

  DenseMap<Operation *, EntryOp> outers; ///< by body
};

} // namespace
} // namespace hydra
