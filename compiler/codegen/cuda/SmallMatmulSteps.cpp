// Which batches of matmuls are of small matrices: of 16 bits, that no single call of the library
// covers; of f32, that memory bounds.
#include "compiler/codegen/cuda/GroupText.h"
#include "compiler/codegen/cuda/LoopPlacement.h"
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;

namespace hydra::cuda {

namespace {

constexpr int64_t kNumber = 2, kPiece = 16 / kNumber; ///< bytes of a number, numbers of 16 bytes

/// An operand: matrices [rows, columns] as they are multiplied.
struct Factor {
  Value buffer;
  SmallVector<int64_t> strides;
  size_t row, column; ///< dimensions of the buffer

  Factor(Value buffer, bool transposed)
      : buffer(buffer), strides(plan::stridesOf(typeOf(buffer))),
        row(strides.size() - (transposed ? 1 : 2)), column(strides.size() - (transposed ? 2 : 1)) {}

  int64_t size(size_t d) const { return typeOf(buffer).getDimSize(d); }
  /// The dimension along which numbers lie side by side, if there is one.
  size_t dense() const { return strides[column] == 1 ? column : row; }

  /// Bytes in shared memory, where lines are padded.
  int64_t sharedBytes() const {
    const size_t lines = dense() == column ? row : column;
    return size(lines) * (size(dense()) + kLoopPad) * kNumber;
  }

  /// Whether every line is whole pieces of 16 bytes at addresses that divide by as many.
  bool hasWholePieces() const {
    if (strides[dense()] != 1 || size(dense()) % kPiece != 0 || plan::alignmentOf(buffer) < 16)
      return false;
    for (size_t d = 0; d < strides.size(); ++d)
      if (d != dense() && size(d) > 1 && strides[d] % kPiece != 0)
        return false;
    return true;
  }

  /// As the template has it; `matrix` counts batches.
  std::string text(StringRef pointer, ArrayRef<int64_t> batch) const {
    return formatv("SmallMatrix<{0}, {1}, {2}, {3}, {4}>{{{5} + ({6})}",
                   cType(typeOf(buffer).getElementType()), size(row), size(column), strides[row],
                   strides[column], pointer,
                   offsetText("matrix", batch, ArrayRef(strides).take_front(batch.size())));
  }
};

/// The distance from matrix to matrix of an operand, if it is one.
std::optional<int64_t> distanceOf(ArrayRef<int64_t> batch, Value operand) {
  const SmallVector<int64_t> strides = plan::stridesOf(typeOf(operand));
  int64_t count = 1, stride = 0;
  for (size_t d = batch.size(); d-- > 0;) {
    if (batch[d] == 1)
      continue;
    if (count == 1)
      stride = strides[d];
    else if (strides[d] != stride * count)
      return std::nullopt;
    count *= batch[d];
  }
  return stride;
}

/// Whether the library, which knows one distance from matrix to matrix for each operand, covers a
/// batch with one call (runtime/cuda/CublasLt.cpp).
bool isOneCall(ArrayRef<int64_t> batch, ArrayRef<Value> operands) {
  return llvm::all_of(operands,
                      [&](Value operand) { return distanceOf(batch, operand).has_value(); });
}

/// Whether the template, which counts elements of a matrix in 32 bits, reaches all of c's, and can
/// be told their strides, that of a single row or column included.
bool isReached(Value c) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const SmallVector<int64_t> strides = plan::stridesOf(typeOf(c));
  int64_t last = 0;
  for (auto [size, stride] :
       llvm::zip(typeOf(c).getShape().take_back(2), ArrayRef(strides).take_back(2))) {
    if (stride > kMost)
      return false;
    last += (size - 1) * stride;
  }
  return last <= kMost;
}

/// Matrices of 16 bits whose batch the library would be called several times for; false where they
/// are none.
bool expandSmallNarrow(StepLauncher &launcher, plan::MatmulOp op) {
  // What a block may have of shared memory without asking for more: matrices that fit are bound by
  // the memory's rate however they are multiplied, so one launch is never slower than several
  // calls.
  constexpr int64_t kMostShared = 48 * 1024, kLeastWarps = 4, kMostWarps = 16;
  Value a = op.getA(), b = op.getB(), c = op.getC();
  const Type type = typeOf(a).getElementType();
  const int64_t rank = typeOf(c).getRank();
  if (op.getBias() || op.getScaleA() || op.getGelu() || op.getCompute() || !isNarrowFloat(type) ||
      typeOf(a).getRank() != rank || typeOf(b).getRank() != rank || !isReached(c))
    return false;
  ArrayRef<int64_t> batch = typeOf(c).getShape().drop_back(2);
  // The template takes b by columns.
  const Factor first(a, op.getTransposeA()), second(b, !op.getTransposeB());
  const int64_t shared = first.sharedBytes() + second.sharedBytes();
  if (isOneCall(batch, {a, b, c}) || !first.hasWholePieces() || !second.hasWholePieces() ||
      shared > kMostShared)
    return false;

  const SmallVector<int64_t> strides = plan::stridesOf(typeOf(c));
  const int64_t m = typeOf(c).getDimSize(rank - 2), n = typeOf(c).getDimSize(rank - 1);
  const int64_t matrices = typeOf(c).getNumElements() / (m * n);
  // A warp for each unit of the result (templates/loop.cuh), and enough of them to fetch.
  const int64_t down = ceilDiv(m, 16), units = (down % 2 == 0 ? down / 2 : down) * ceilDiv(n, 16);
  const int64_t threads = 32 * std::clamp(units, kLeastWarps, kMostWarps);
  const std::string element = cType(type).str(), result = cType(typeOf(c).getElementType()).str();
  const std::string in = "const " + element + " *", out = result + " *";
  const std::string matrix =
      formatv("Matrix<{0}, {1}, {2}, {3}, {4}, {5}, false>{{a2 + ({6})}", result, m, n,
              strides[rank - 2], strides[rank - 1], LoopPlacement::outsideAlignment(c, 1),
              offsetText("matrix", batch, ArrayRef(strides).take_front(batch.size())));
  launcher.launch(
      "small_matmuls", {in, in, out},
      formatv("const int64 matrix = blockIdx.x; multiplySmall<{0}, {1}>({2}, {3}, {4}, a0);",
              op.getAccumulate() ? "true" : "false", threads, matrix, first.text("a0", batch),
              second.text("a1", batch))
          .str(),
      {matrices, 1, 1, threads, shared}, {a, b, c},
      {plan::kRead, plan::kRead, op.getAccumulate() ? plan::kUpdate : plan::kWrite});
  return true;
}

/// How a matmul of f32 is cut (templates/small_floats.cuh). The numbers were measured.
struct FloatTiling {
  int64_t tileM, tileN, threadM, threadN, panelK, ahead, groups;

  /// `aAlongK`, `bAlongK`: operands that are dense along k.
  FloatTiling(int64_t m, int64_t n, int64_t k, bool aAlongK, bool bAlongK) {
    const auto cover = [](int64_t size, int64_t low, int64_t high) {
      return std::clamp<int64_t>(llvm::PowerOf2Ceil(size), low, high);
    };
    tileM = cover(m, 8, 64), tileN = cover(n, 8, 64);
    const bool isSmall = tileM * tileN < 1024, isLarge = tileM == 64 && tileN == 64;
    threadM = isLarge && k > 16 ? 8 : 4;
    threadN = isLarge && (k <= 16 || !aAlongK || !bAlongK) ? 8 : 4;
    // Panels of 32 fill lines of 128 bytes where nearly all is dense along k.
    const int64_t alongK = (aAlongK ? tileM : 0) + (bAlongK ? tileN : 0);
    panelK = cover(k, 8, isSmall || (k > 32 && 4 * alongK >= 3 * (tileM + tileN)) ? 32 : 16);
    ahead = isSmall ? std::min<int64_t>(3, ceilDiv(k, panelK)) : 1;
    const int64_t group = tileM / threadM * (tileN / threadN);
    groups = group >= 64 ? 1 : std::min(128 / group, panelK / 4);
  }

  int64_t tiles(int64_t m, int64_t n) const { return ceilDiv(m, tileM) * ceilDiv(n, tileN); }
  int64_t threads() const { return tileM / threadM * (tileN / threadN) * groups; }
  std::string text() const {
    return formatv("FloatTiling<{0}, {1}, {2}, {3}, {4}, {5}, {6}>", tileM, tileN, threadM, threadN,
                   panelK, ahead, groups);
  }
};

/// Matrices of f32 as they are multiplied, at one distance.
struct FloatFactor {
  Value buffer;
  int64_t row, column, distance; ///< strides

  std::string text() const {
    return formatv("FloatMatrices<{0}, {1}, {2}>", row, column, distance);
  }
  FloatFactor transposed() const { return {buffer, column, row, distance}; }
};

/// Nothing where the template does not reach them.
std::optional<FloatFactor> floatFactorOf(Value buffer, bool transposed, ArrayRef<int64_t> batch) {
  const std::optional<int64_t> distance = distanceOf(batch, buffer);
  const Factor factor(buffer, transposed);
  const int64_t row = factor.strides[factor.row], column = factor.strides[factor.column];
  if (!distance || (row != 1 && column != 1) || plan::alignmentOf(buffer) < 16)
    return std::nullopt;
  return FloatFactor{buffer, row, column, *distance};
}

/// Where each matrix is so small that memory bounds it, and there is one for each multiprocessor:
/// the library's kernels are for larger ones. False where there is none.
bool expandSmallFloats(StepLauncher &launcher, plan::MatmulOp op) {
  constexpr int64_t kLeast = 8; // rows, columns and k; fewer would leave threads idle
  Value a = op.getA(), b = op.getB(), c = op.getC();
  const int64_t rank = typeOf(c).getRank();
  const auto isF32 = [&](Value operand) {
    return typeOf(operand).getElementType().isF32() && typeOf(operand).getRank() == rank;
  };
  if (op.getBias() || op.getScaleA() || op.getGelu() || op.getSums() || op.getCompute() ||
      rank < 3 || !isF32(a) || !isF32(b) || !isF32(c))
    return false;
  ArrayRef<int64_t> batch = typeOf(c).getShape().drop_back(2);
  std::optional<FloatFactor> first = floatFactorOf(a, op.getTransposeA(), batch),
                             second = floatFactorOf(b, op.getTransposeB(), batch),
                             result = floatFactorOf(c, false, batch);
  if (!first || !second || !result)
    return false;
  int64_t m = typeOf(c).getDimSize(rank - 2), n = typeOf(c).getDimSize(rank - 1);
  const int64_t matrices = typeOf(c).getNumElements() / (m * n),
                k = typeOf(a).getDimSize(rank - (op.getTransposeA() ? 2 : 1));
  TargetAttr target = launcher.target;
  constexpr double kOfFma = 2.0; // operations of an instruction
  const bool isBoundByMemory = launcher.flops() / (kOfFma * target.rate(kVectorFlops)) <=
                               launcher.bytes() / target.rate(kMemoryBandwidth);
  if (std::min({m, n, k}) < kLeast || matrices < target.getMultiprocessors() || !isBoundByMemory)
    return false;
  if (result->column != 1) { // cᵀ = bᵀ aᵀ
    std::swap(m, n);
    std::swap(first, second);
    for (std::optional<FloatFactor> *factor : {&first, &second, &result})
      *factor = (*factor)->transposed();
  }
  const FloatTiling tiling(m, n, k, first->column == 1, second->row == 1 && second->column != 1);
  LaunchShape shape{matrices * tiling.tiles(m, n), 1, 1, tiling.threads(), 0};
  // Blocks that wait would take the place of blocks that have not begun.
  shape.letsLater = false;
  launcher.launch("matmul", {"const float *", "const float *", "float *"},
                  formatv("multiplyFloats<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}>(a0, a1, a2);", m,
                          n, k, op.getAccumulate() ? "true" : "false", tiling.text(), first->text(),
                          second->text(), result->text())
                      .str(),
                  shape, {first->buffer, second->buffer, c},
                  {plan::kRead, plan::kRead, op.getAccumulate() ? plan::kUpdate : plan::kWrite});
  return true;
}

} // namespace

bool expandSmallMatmuls(StepLauncher &launcher, plan::MatmulOp op) {
  return expandSmallFloats(launcher, op) || expandSmallNarrow(launcher, op);
}

} // namespace hydra::cuda
