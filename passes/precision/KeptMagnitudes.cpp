// How largest magnitudes of whole weights and of pieces become one vector.
#include "passes/precision/KeptMagnitudes.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

Value magnitudesOfRows(OpBuilder &b, Location loc, Value x) {
  Value magnitudes = MaxOp::create(b, loc, x, NegOp::create(b, loc, x));
  Value ofRows = build::largest(b, loc, magnitudes, {build::typeOf(x).getRank() - 1});
  return build::reshape(b, loc, ofRows, {build::typeOf(ofRows).getNumElements()});
}

bool isMagnitudeOf(MaxOp max, Value x) {
  auto neg = max.getB().getDefiningOp<NegOp>();
  return max.getA() == x && neg && neg.getX() == x;
}

/// Of each of these magnitudes [rows of its own] the largest, [count] f32. Neighbours of as many
/// rows are reduced at once.
static Value largestOfEach(OpBuilder &b, Location loc, ArrayRef<Value> magnitudes) {
  SmallVector<Value> parts;
  while (!magnitudes.empty()) {
    const Type type = magnitudes.front().getType();
    const ArrayRef<Value> same =
        magnitudes.take_while([&](Value other) { return other.getType() == type; });
    magnitudes = magnitudes.drop_front(same.size());
    const int64_t rows = build::shapeOf(same.front())[0];
    Value all = build::concat(b, loc, same, 0);
    all = build::reshape(b, loc, all, {static_cast<int64_t>(same.size()), rows});
    parts.push_back(build::cast(b, loc, build::largest(b, loc, all, {1}), b.getF32Type()));
  }
  return build::concat(b, loc, parts, 0);
}

/// Neighbours that stay neighbours are moved together.
static Value inOrder(OpBuilder &b, Location loc, ArrayRef<std::pair<Value, int64_t>> places) {
  SmallVector<Value> parts;
  while (!places.empty()) {
    const auto [from, first] = places.front();
    size_t size = 1;
    while (size < places.size() &&
           places[size] == std::pair(from, first + static_cast<int64_t>(size)))
      ++size;
    parts.push_back(build::partOf(b, loc, from, 0, first, static_cast<int64_t>(size)));
    places = places.drop_front(size);
  }
  return build::concat(b, loc, parts, 0);
}

void KeptMagnitudes::addWhole(int64_t number, Value magnitudes) {
  wholeNumbers.push_back(number);
  whole.push_back(magnitudes);
}

void KeptMagnitudes::addPieces(const UnitScales &unit, ArrayRef<int64_t> numbers,
                               Value magnitudes) {
  llvm::append_range(pieceNumbers, numbers);
  pieces.push_back(magnitudes);
  layout = unit;
}

Value KeptMagnitudes::ofAll(OpBuilder &b, Location loc) const {
  if (pieces.empty())
    return largestOfEach(b, loc, whole);
  Value ofPieces = build::concat(b, loc, pieces, 0);
  ofPieces = layout->overRanks(b, loc, build::cast(b, loc, ofPieces, b.getF32Type()));
  SmallVector<std::pair<Value, int64_t>> places(wholeNumbers.size() + pieceNumbers.size());
  for (auto [i, number] : llvm::enumerate(pieceNumbers))
    places[number] = {ofPieces, static_cast<int64_t>(i)};
  if (Value ofWhole = whole.empty() ? Value() : largestOfEach(b, loc, whole))
    for (auto [i, number] : llvm::enumerate(wholeNumbers))
      places[number] = {ofWhole, static_cast<int64_t>(i)};
  return inOrder(b, loc, places);
}

} // namespace hydra
