// hydra-chunk-linear-ce: linear + cross entropy over chunks of rows.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowLoss.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_CHUNKLINEARCE
#include "passes/Passes.h.inc"

namespace {

struct ChunkLinearCE : impl::ChunkLinearCEBase<ChunkLinearCE> {
  using ChunkLinearCEBase::ChunkLinearCEBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    constexpr int64_t kMostMultiple = 1 << 20;
    if (classMultiple < 1 || classMultiple > kMostMultiple) {
      model.emitOpError() << "cannot pad classes to a multiple of " << classMultiple.getValue();
      return signalPassFailure();
    }
    if (chunk < 0) {
      model.emitOpError() << "cannot compute " << chunk.getValue() << " rows at a time";
      return signalPassFailure();
    }
    if (megabytes < 1 || megabytes > kMostMegabytes) {
      model.emitOpError() << "cannot compute " << megabytes.getValue() << " MiB at a time";
      return signalPassFailure();
    }
    SmallVector<LinearCrossEntropyOp> found;
    model.walk([&](LinearCrossEntropyOp op) { found.push_back(op); });
    for (LinearCrossEntropyOp op : found)
      if (failed(expand(op)))
        return signalPassFailure();
  }

private:
  static constexpr int64_t kMostMegabytes = int64_t{1} << 27; // what a process can address
  /// Every chunk is a dozen operations. So many are compiled in seconds; on request in a minute.
  static constexpr int64_t kMostChunks = 1024, kMostWanted = 4096;

  /// What logits are held in.
  static Type logitsOf(LinearCrossEntropyOp op) {
    return op.getRoundedLogits() ? build::typeOf(op.getX()).getElementType()
                                 : Float32Type::get(op.getContext());
  }

  /// How many chunks the rows of a loss are cut into.
  FailureOr<int64_t> countOf(LinearCrossEntropyOp op, int64_t rows, int64_t classes) const {
    if (chunk == 0) {
      const int64_t bytes = logitsOf(op).getIntOrFloatBitWidth() / 8 * classes;
      const int64_t limit = std::max<int64_t>(1, (megabytes << 20) / bytes);
      return std::min((rows - 1) / limit + 1, kMostChunks);
    }
    const int64_t count = (rows - 1) / chunk + 1;
    if (count > kMostWanted)
      return op.emitOpError() << "has " << rows << " rows, which chunks of " << chunk.getValue()
                              << " cut into " << count << "; expected at most " << kMostWanted
                              << ", chunks of " << (rows - 1) / kMostWanted + 1 << " or more";
    return count;
  }

  /// Values that all chunks share.
  struct Shared {
    Value x, w, labels, share; ///< [T, D], [V, D], [T], 1 / valid rows
    UnitAttr reduced;          ///< of the matmuls
    TypeAttr compute;          ///< of the matmuls
    TypeAttr logits;           ///< what they are held in; null: as x
    int64_t classes;           ///< of which the loss knows; `w` may have rows of zeros behind them
  };

  LogicalResult expand(LinearCrossEntropyOp op) {
    Location loc = withCategory(madeBy(getArgument(), op.getLoc()), Category::logits);
    OpBuilder b(op);
    int64_t classes = build::shapeOf(op.getW())[0];
    int64_t rows = build::typeOf(op.getLabels()).getNumElements();
    FailureOr<int64_t> count = countOf(op, rows, classes);
    if (failed(count))
      return failure();
    int64_t size = (rows - 1) / *count + 1; // even chunks, the last may be shorter

    Shared s{build::flattenRows(b, loc, op.getX()),
             op.getW(),
             build::reshape(b, loc, op.getLabels(), {rows}),
             Value(),
             op.getReducedReductionAttr(),
             op.getComputeAttr(),
             op.getRoundedLogits() ? TypeAttr() : TypeAttr::get(b.getF32Type()),
             classes};
    // Rows of whole 16 bytes in 16 bits are as good as longer ones; padding would copy the weight.
    constexpr int64_t aligned = 8;
    if (int64_t padded = llvm::alignTo(classes, classMultiple);
        classes % aligned != 0 && padded != classes && !build::typeOf(s.w).getElementType().isF32())
      s.w = PadOp::create(b, withCategory(ofLogits(loc), Category::param), s.w,
                          b.getI64IntegerAttr(0), b.getI64IntegerAttr(0),
                          b.getI64IntegerAttr(padded - classes));
    s.share = RowLoss::shareOfRow(b, loc, s.labels, op.getCount());
    Value loss, dw;
    SmallVector<Value> losses, dx;
    // Of a frozen weight nobody reads the gradient, nor that of rows where nothing below is
    // trained.
    const Saved saved{op.getSaving() && !op.getSaved()[0].use_empty(),
                      op.getSaving() && !op.getSaved()[1].use_empty()};
    for (int64_t start = 0; start < rows; start += size) {
      int64_t n = std::min(size, rows - start);
      auto [rowLosses, part] = expandChunk(b, loc, s, start, n, saved, dx, dw);
      losses.push_back(rowLosses);
      loss = loss ? AddOp::create(b, loc, loss, part) : part;
      ++chunks;
    }
    SmallVector<Value> results{MulOp::create(b, loc, loss, s.share)};
    auto joined = [&](Location at, ArrayRef<Value> parts, ArrayRef<int64_t> shape) {
      Value whole = ConcatOp::create(b, at, parts, b.getI64IntegerAttr(0));
      return build::reshape(b, at, whole, shape);
    };
    if (Value rowLosses = op.getRowLosses())
      results.push_back(joined(loc, losses, build::shapeOf(rowLosses)));
    for (auto [result, value] : llvm::zip(op->getResults(), results))
      result.replaceAllUsesWith(value);
    if (saved.rows)
      op.getSaved()[0].replaceAllUsesWith(joined(ofRows(loc), dx, build::shapeOf(op.getX())));
    if (saved.weight)
      op.getSaved()[1].replaceAllUsesWith(
          SliceOp::create(b, ofWeight(loc), dw, b.getI64IntegerAttr(0), b.getI64IntegerAttr(0),
                          b.getI64IntegerAttr(classes)));
    op.erase();
    return success();
  }

  /// Numbers `[T, >= classes]`, and another one in the columns behind the classes.
  static Value onClasses(OpBuilder &b, Location loc, Value z, int64_t classes, double other) {
    RankedTensorType type = build::typeOf(z);
    if (type.getShape()[1] == classes)
      return z;
    RankedTensorType numbers = type.clone(b.getI32Type());
    Value column = IotaOp::create(b, loc, numbers, b.getI64ArrayAttr(type.getShape()),
                                  b.getI64IntegerAttr(1), TypeAttr());
    Value exists =
        CompareOp::create(b, loc, column, build::constant(b, loc, numbers, classes), Predicate::lt);
    return SelectOp::create(b, loc, exists, z, build::constant(b, loc, type, other));
  }

  // Whatever phase the loss is in, the logits are the model's and gradients are of the backward
  // pass.
  static Location ofLogits(Location loc) { return withPhase(loc, Phase::forward); }
  static Location ofGradient(Location loc) { return withPhase(loc, Phase::backward); }
  static Location ofRows(Location loc) { return withCategory(ofGradient(loc), Category::act_grad); }
  static Location ofWeight(Location loc) { return withCategory(ofGradient(loc), Category::grad); }

  /// Which gradients are wanted: of the rows, of the weight.
  struct Saved {
    bool rows, weight;
  };

  /// The losses of the rows of one chunk, and their sum; the gradients go to `dx` and `dw`.
  static std::pair<Value, Value> expandChunk(OpBuilder &b, Location loc, const Shared &s,
                                             int64_t start, int64_t rows, Saved saved,
                                             SmallVectorImpl<Value> &dx, Value &dw) {
    auto slice = [&](Value v) -> Value {
      return SliceOp::create(b, loc, v, b.getI64IntegerAttr(0), b.getI64IntegerAttr(start),
                             b.getI64IntegerAttr(rows));
    };
    Value x = slice(s.x), labels = slice(s.labels);
    auto f32 = TypeAttr::get(b.getF32Type());
    Value held =
        LinearOp::create(b, ofLogits(loc), x, s.w, Value(), s.logits, s.reduced, s.compute);
    Value z = build::cast(b, loc, held, b.getF32Type());
    constexpr double never = -1e30; // e^never is 0
    RowLoss row{b, loc, onClasses(b, loc, z, s.classes, never), labels, s.classes};
    Value lse = row.logSumExp(), losses = row.losses(lse);
    const auto result = [&] { return std::pair(losses, build::sum(b, loc, losses, {0})); };
    if (!saved.rows && !saved.weight)
      return result();

    // From the scores as they are: those with another value behind the classes would have to be
    // kept. There e^(score - lse) may overflow, which times a weight of zero is no number.
    const Location at = ofGradient(loc);
    Value dz = RowLoss{b, at, z, labels, s.classes}.gradient(lse, s.share);
    dz = onClasses(b, at, dz, s.classes, 0.0);
    Type element = build::typeOf(x).getElementType();
    dz = build::cast(b, at, dz, element);
    // In front of what looks at losses, so that one kernel can read the logits and put their
    // gradient in their place.
    const std::pair made = result();
    if (saved.rows)
      dx.push_back(MatmulOp::create(b, ofRows(loc), dz, s.w, Value(), UnitAttr(), UnitAttr(),
                                    TypeAttr(), s.reduced, s.compute));
    if (saved.weight)
      dw = MatmulOp::create(b, ofWeight(loc), dz, x, dw, b.getUnitAttr(), UnitAttr(), f32,
                            s.reduced, s.compute);
    return made;
  }
};

} // namespace
} // namespace hydra
