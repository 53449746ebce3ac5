// hydra-align-rows: rows that products read or write begin at multiples of 16 bytes.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
#include "passes/Passes.h"
#include "passes/place/Layouts.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_ALIGNROWS
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t kMostGrowth = 8; ///< bytes may grow by this part of them

struct AlignRows : impl::AlignRowsBase<AlignRows> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (Operation &op : entry.getBody().front())
        align(&op);
  }

private:
  void align(Operation *op) {
    auto storage = dyn_cast<StorageOpInterface>(op);
    if (!storage || isa<UseOp, ConcatOp>(op) || op->hasAttr(kViewAttr))
      return;
    SmallVector<int64_t> pitches = llvm::map_to_vector(
        op->getResults(), [&](OpResult result) { return pitchOf(storage, result); });
    if (llvm::all_of(pitches, [](int64_t pitch) { return pitch == 0; }))
      return;
    op->setAttr(kPitchAttr, DenseI64ArrayAttr::get(&getContext(), pitches));
    ++aligned;
  }

  /// Elements from row to row of a result; 0: as many as a row has.
  static int64_t pitchOf(StorageOpInterface op, OpResult result) {
    RankedTensorType type = build::typeOf(result);
    if (type.getRank() < 2)
      return 0;
    OperandLayout own = op.resultLayout(result.getResultNumber());
    int64_t wanted = std::max(own.alignedRows, wantedByReaders(result));
    int64_t bytes = std::max(1u, type.getElementTypeBitWidth() / 8);
    int64_t width = type.getShape().back(), pitch = llvm::alignTo(width * bytes, wanted) / bytes;
    if (pitch == width || (pitch - width) * kMostGrowth > width)
      return 0;
    SmallVector<int64_t> padded(type.getShape());
    padded.back() = pitch;
    SmallVector<int64_t> strides = denseStrides(padded);
    bool possible = accepts(own, type.getShape(), strides) && readersAccept(result, strides);
    return possible ? pitch : 0;
  }

  static OperandLayout wantedLayout(OpOperand &use) {
    auto storage = dyn_cast<StorageOpInterface>(use.getOwner());
    return storage ? storage.operandLayout(use.getOperandNumber()) : OperandLayout{};
  }

  /// The alignment that readers of a value, or of views of it, wish for.
  static unsigned wantedByReaders(Value value) {
    unsigned wanted = 1;
    for (OpOperand &use : value.getUses())
      wanted = std::max(wanted, use.getOwner()->hasAttr(kViewAttr)
                                    ? wantedByReaders(use.getOwner()->getResult(0))
                                    : wantedLayout(use).alignedRows);
    return wanted;
  }

  /// Whether all readers of a value, and of views of it, take it with these strides.
  static bool readersAccept(Value value, ArrayRef<int64_t> strides) {
    return llvm::all_of(value.getUses(), [&](OpOperand &use) {
      Operation *reader = use.getOwner();
      if (!reader->hasAttr(kViewAttr))
        return accepts(wantedLayout(use), build::shapeOf(value), strides);
      FailureOr<StridedView> view = cast<StorageOpInterface>(reader).view(strides);
      return succeeded(view) && readersAccept(reader->getResult(0), view->strides);
    });
  }
};

} // namespace
} // namespace hydra
