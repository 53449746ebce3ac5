// Which matmuls have so few rows that they are a sweep over weights, and how that is cut into
// blocks.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

namespace {

/// The rows of a matrix [.., columns] at one distance from each other.
struct Rows {
  int64_t count = 1, stride = 0;
};

/// Of a buffer whose last dimension is dense; nothing where its leading dimensions do not merge.
std::optional<Rows> rowsOf(Value buffer) {
  SmallVector<int64_t> strides = plan::stridesOf(typeOf(buffer));
  ArrayRef<int64_t> shape = typeOf(buffer).getShape();
  if (shape.back() > 1 && strides.back() != 1)
    return std::nullopt;
  Rows rows;
  for (size_t d = shape.size() - 1; d-- > 0;) {
    if (shape[d] == 1)
      continue;
    if (rows.count == 1)
      rows.stride = strides[d];
    else if (strides[d] != rows.stride * rows.count)
      return std::nullopt;
    rows.count *= shape[d];
  }
  return rows;
}

/// Whether no step of any program writes where the buffer lies.
bool isNeverWritten(Value buffer) {
  plan::BufferOp root = plan::placeOf(buffer).buffer;
  if (root.isTransient())
    return false;
  SmallVector<Value> names{root.getBuffer()};
  while (!names.empty()) {
    for (OpOperand &use : names.pop_back_val().getUses()) {
      if (auto view = dyn_cast<plan::ViewOp>(use.getOwner()))
        names.push_back(view.getView());
      auto step = dyn_cast<plan::StepInterface>(use.getOwner());
      if (step && step.getAccesses()[use.getOperandNumber()] != plan::kRead)
        return false;
      if (isa<plan::LoopOp>(use.getOwner()))
        return false; // its body may
    }
  }
  return true;
}

} // namespace

bool expandFewRows(StepLauncher &launcher, plan::MatmulOp op) {
  constexpr int64_t kMostRows = 16, kPiece = 8;
  Value a = op.getA(), w = op.getB(), c = op.getC(), bias = op.getBias();
  const Type type = typeOf(a).getElementType();
  if (op.getTransposeA() || !op.getTransposeB() || op.getAccumulate() || op.getGelu() ||
      op.getSums() || op.getCompute() || !isNarrowFloat(type) || typeOf(w).getRank() != 2)
    return false;
  const std::optional<Rows> ofA = rowsOf(a), ofW = rowsOf(w), ofC = rowsOf(c);
  const int64_t k = typeOf(a).getShape().back(), n = typeOf(c).getShape().back();
  if (!ofA || !ofW || !ofC || ofA->count > kMostRows || k % kPiece || ofA->stride % kPiece ||
      ofW->stride % kPiece || std::min(plan::alignmentOf(a), plan::alignmentOf(w)) < 16)
    return false;

  // Four pieces of 32 numbers are in flight and four are multiplied; of more rows, half as many.
  const bool many = ofA->count > 8;
  const int64_t tiles = many ? 2 : 1, flight = many ? 2 : 4;
  const int64_t warps = std::clamp<int64_t>(ceilDiv(ceilDiv(k, 32), 2 * flight), 1, many ? 8 : 16);
  const std::string element = cType(type).str(), result = cType(typeOf(c).getElementType()).str();
  const std::string in = "const " + element + " *", added = "const " + result + " *",
                    out = result + " *";
  SmallVector<Value> args = {a, w, c};
  SmallVector<StringRef> types = {in, in, out};
  SmallVector<int64_t> access = {plan::kRead, plan::kRead, plan::kWrite};
  if (bias) {
    args.push_back(bias);
    types.push_back(added);
    access.push_back(plan::kRead);
  }
  launcher.launch("few_rows_matmul", types,
                  llvm::formatv("fewRowsMatmul<{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, "
                                "{10}, {11}>(a0, a1, {12}, a2);",
                                element, result, ofA->count, n, k, ofA->stride, ofW->stride,
                                ofC->stride, tiles, warps, flight, bias ? "true" : "false",
                                bias ? "a3" : "nullptr")
                      .str(),
                  {ceilDiv(n, 16 * tiles), 1, 1, 32 * warps, 0}, args, access,
                  isNeverWritten(w) ? StepLauncher::Waits::Itself : StepLauncher::Waits::First);
  return true;
}

} // namespace hydra::cuda
