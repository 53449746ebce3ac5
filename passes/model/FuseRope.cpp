// hydra-fuse-rope: rotations of heads that lie side by side become one.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEROPE
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-fuse-rope";

/// A rotation of heads that are a slice of the columns of a value.
struct Part {
  RopeOp rope;
  SliceOp slice;
  int64_t heads, width;

  int64_t begin() { return slice.getStart(); }
  int64_t end() { return slice.getStart() + slice.getSize(); }
};

std::optional<Part> partOf(RopeOp rope) {
  auto reshape = rope.getX().getDefiningOp<ReshapeOp>();
  auto slice = reshape ? reshape.getX().getDefiningOp<SliceOp>() : SliceOp();
  if (!slice || slice.getAxis() != build::typeOf(slice.getX()).getRank() - 1)
    return std::nullopt;
  ArrayRef<int64_t> shape = build::shapeOf(rope.getX());
  // The columns of a row become heads; rows stay.
  if (shape.size() != 4 || shape[2] * shape[3] != slice.getSize() ||
      build::shapeOf(slice.getX()).drop_back() != shape.drop_back(2))
    return std::nullopt;
  return Part{rope, slice, shape[2], shape[3]};
}

struct FuseRope : impl::FuseRopeBase<FuseRope> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      SmallVector<Part> parts;
      for (auto rope : entry.getBody().front().getOps<RopeOp>())
        if (std::optional<Part> part = partOf(rope))
          parts.push_back(*part);
      for (size_t i = 0; i < parts.size(); ++i)
        for (size_t j = i + 1; j < parts.size(); ++j)
          if (areNeighbours(parts[i], parts[j])) {
            Part first = parts[i].begin() < parts[j].begin() ? parts[i] : parts[j];
            fuse(first, first.rope == parts[i].rope ? parts[j] : parts[i], parts[i].rope);
            parts.erase(parts.begin() + static_cast<ptrdiff_t>(j));
            ++fused;
            break;
          }
    }
  }

private:
  static bool areNeighbours(Part &a, Part &b) {
    return a.slice.getX() == b.slice.getX() && a.width == b.width &&
           a.rope.getProperties() == b.rope.getProperties() &&
           a.rope.getPositions() == b.rope.getPositions() &&
           (a.end() == b.begin() || b.end() == a.begin());
  }

  /// Writes one rotation where the earlier of the two stood.
  static void fuse(Part first, Part second, RopeOp earlier) {
    OpBuilder b(earlier);
    Location loc = madeBy(kPass, earlier.getLoc());
    int64_t rank = build::typeOf(first.slice.getX()).getRank();
    Value columns = SliceOp::create(b, loc, first.slice.getX(), b.getI64IntegerAttr(rank - 1),
                                    b.getI64IntegerAttr(first.begin()),
                                    b.getI64IntegerAttr(second.end() - first.begin()));
    SmallVector<int64_t> shape(build::shapeOf(first.rope.getX()));
    shape[2] = first.heads + second.heads;
    Operation *rope = b.clone(*earlier);
    rope->setOperand(0, build::reshape(b, loc, columns, shape));
    rope->getResult(0).setType(
        RankedTensorType::get(shape, build::typeOf(first.rope.getY()).getElementType()));
    rope->moveAfter(rope->getOperand(0).getDefiningOp());
    b.setInsertionPointAfter(rope);
    auto heads = [&](int64_t start, int64_t count) -> Value {
      return SliceOp::create(b, loc, rope->getResult(0), b.getI64IntegerAttr(2),
                             b.getI64IntegerAttr(start), b.getI64IntegerAttr(count));
    };
    first.rope.getY().replaceAllUsesWith(heads(0, first.heads));
    second.rope.getY().replaceAllUsesWith(heads(first.heads, second.heads));
    first.rope.erase();
    second.rope.erase();
  }
};

} // namespace
} // namespace hydra
