// hydra-chunk-linear-ce: linear + cross entropy over chunks of rows.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/group/RowLoss.h"

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
    if (chunk < 0) {
      model.emitOpError() << "cannot compute " << chunk.getValue() << " rows at a time";
      return signalPassFailure();
    }
    SmallVector<LinearCrossEntropyOp> found;
    model.walk([&](LinearCrossEntropyOp op) { found.push_back(op); });
    for (LinearCrossEntropyOp op : found)
      expand(op);
  }

private:
  /// Values that all chunks share.
  struct Shared {
    Value x, w, labels, share; ///< [T, D], [V, D], [T], 1 / valid rows
    UnitAttr reduced;          ///< of the products
  };

  void expand(LinearCrossEntropyOp op) {
    Location loc = op.getLoc();
    OpBuilder b(op);
    int64_t classes = build::shapeOf(op.getW())[0];
    int64_t rows = build::typeOf(op.getLabels()).getNumElements();
    int64_t limit = chunk > 0 ? chunk : std::max<int64_t>(1, (megabytes << 20) / (4 * classes));
    int64_t count = (rows + limit - 1) / limit;
    int64_t size = (rows + count - 1) / count; // even chunks, the last may be shorter

    Shared s{build::flattenRows(b, loc, op.getX()), op.getW(),
             build::reshape(b, loc, op.getLabels(), {rows}), Value(), op.getReducedReductionAttr()};
    s.share = RowLoss::shareOfRow(b, loc, s.labels);
    Value loss, dw;
    SmallVector<Value> dx;
    for (int64_t start = 0; start < rows; start += size) {
      int64_t n = std::min(size, rows - start);
      Value part = expandChunk(b, loc, s, start, n, op.getSaving(), dx, dw);
      loss = loss ? AddOp::create(b, loc, loss, part) : part;
      ++chunks;
    }
    SmallVector<Value> results{MulOp::create(b, loc, loss, s.share)};
    if (op.getSaving()) {
      Value whole = ConcatOp::create(b, loc, dx, b.getI64IntegerAttr(0));
      results.push_back(build::reshape(b, loc, whole, build::shapeOf(op.getX())));
      results.push_back(dw);
    }
    op->replaceAllUsesWith(results);
    op.erase();
  }

  /// The sum of the losses of one chunk; its gradients go to `dx` and `dw`.
  static Value expandChunk(OpBuilder &b, Location loc, const Shared &s, int64_t start, int64_t rows,
                           bool saving, SmallVectorImpl<Value> &dx, Value &dw) {
    auto slice = [&](Value v) -> Value {
      return SliceOp::create(b, loc, v, b.getI64IntegerAttr(0), b.getI64IntegerAttr(start),
                             b.getI64IntegerAttr(rows));
    };
    Value x = slice(s.x), labels = slice(s.labels);
    auto f32 = TypeAttr::get(b.getF32Type());
    Value z = LinearOp::create(b, loc, x, s.w, Value(), f32, s.reduced);
    RowLoss row{b, loc, z, labels};
    Value lse = row.logSumExp(), loss = row.loss(lse);
    if (!saving)
      return loss;

    Value dz = row.gradient(lse, s.share);
    Type element = build::typeOf(x).getElementType();
    dz = build::cast(b, loc, dz, element);
    dx.push_back(
        MatmulOp::create(b, loc, dz, s.w, Value(), UnitAttr(), UnitAttr(), TypeAttr(), s.reduced));
    dw = MatmulOp::create(b, loc, dz, x, dw, b.getUnitAttr(), UnitAttr(), f32, s.reduced);
    return loss;
  }
};

} // namespace
} // namespace hydra
