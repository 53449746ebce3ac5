// Which batches of matmuls are of small matrices that no single call of the library covers.
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

/// Whether the library, which knows one distance from matrix to matrix for each operand, covers a
/// batch with one call (runtime/cuda/CublasLt.cpp).
bool isOneCall(ArrayRef<int64_t> batch, ArrayRef<Value> operands) {
  return llvm::all_of(operands, [&](Value operand) {
    const SmallVector<int64_t> strides = plan::stridesOf(typeOf(operand));
    int64_t count = 1, stride = 0;
    for (size_t d = batch.size(); d-- > 0;) {
      if (batch[d] == 1)
        continue;
      if (count == 1)
        stride = strides[d];
      else if (strides[d] != stride * count)
        return false;
      count *= batch[d];
    }
    return true;
  });
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

} // namespace

bool expandSmallMatmuls(StepLauncher &launcher, plan::MatmulOp op) {
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

} // namespace hydra::cuda
