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

/// A template and how it is launched.
struct Sweep {
  StringRef name;
  std::string how; ///< its arguments between those of the matmul and whether there is a bias
  LaunchShape shape;
};

/// Copies by the multiprocessor itself: a block on each, with a ring of all that a block may have,
/// or of what the target says.
FailureOr<Sweep> bulkSweep(Operation *op, TargetAttr target, const SaidSizes &said, int64_t m,
                           int64_t n, int64_t k) {
  constexpr int64_t kWarps = 8, kCopiers = 4, kRows = 16, kNumber = 2, kPad = 64;
  const int64_t sums = 2 * kWarps * kRows * (8 * ceilDiv(m, 8) + 1) * 4, barriers = 1024;
  const int64_t ring = target.getBlockShared() - sums - barriers;
  // Rows in pieces of 2 KiB where at least three stages of them fit.
  const int64_t piece = kWarps * 32;
  int64_t depth = std::min<int64_t>(said.get("depth").value_or(1024), ceilDiv(k, piece) * piece);
  auto stageBytes = [&] { return (kRows + m) * (depth * kNumber + kPad); };
  while (!said.get("depth") && depth > piece && ring / stageBytes() < 3)
    depth = ceilDiv(depth / 2, piece) * piece;
  const int64_t room = ring / stageBytes(), stages = said.get("stages").value_or(room);
  if (said.get("warps"))
    return said.refuse(op) << "the kernel for targets with bulk copies has " << kWarps << " warps";
  if (!said.empty() && (stages > room || room < 2))
    return said.refuse(op) << "of " << m << " rows a block of " << target.getName() << " has "
                           << "room for " << room << " stages of depth " << depth;
  return Sweep{"fewRowsBulk",
               llvm::formatv("{0}, {1}", depth, stages).str(),
               {std::min<int64_t>(n, target.getMultiprocessors()), 1, 1, 32 * (kWarps + kCopiers),
                stages * stageBytes()}};
}

/// Loads by threads. Four pieces of 32 numbers are in flight and four are multiplied; of more rows,
/// half as many.
FailureOr<Sweep> plainSweep(Operation *op, const SaidSizes &said, int64_t m, int64_t n, int64_t k) {
  const bool many = m > 8;
  const int64_t tiles = many ? 2 : 1, flight = many ? 2 : 4, most = many ? 8 : 16;
  const int64_t warps =
      said.get("warps").value_or(std::clamp<int64_t>(ceilDiv(ceilDiv(k, 32), 2 * flight), 1, most));
  if (said.get("depth") || said.get("stages"))
    return said.refuse(op) << "only the kernel for targets with bulk copies has depth and stages";
  if (warps > most)
    return said.refuse(op) << "of " << m << " rows a block has at most " << most << " warps";
  return Sweep{"fewRowsMatmul",
               llvm::formatv("{0}, {1}, {2}", tiles, warps, flight).str(),
               {ceilDiv(n, 16 * tiles), 1, 1, 32 * warps, 0}};
}

} // namespace

FailureOr<bool> expandFewRows(StepLauncher &launcher, plan::MatmulOp op) {
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
  const auto waits = isNeverWritten(w) ? StepLauncher::Waits::Itself : StepLauncher::Waits::First;
  const SaidSizes said = launcher.tiles.of(kFewRowsMatmul);
  const FailureOr<Sweep> sweep = launcher.target.has(kBulkCopies)
                                     ? bulkSweep(op, launcher.target, said, ofA->count, n, k)
                                     : plainSweep(op, said, ofA->count, n, k);
  if (failed(sweep))
    return failure();
  launcher.launch(kFewRowsMatmul, types,
                  llvm::formatv("{0}<{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}>"
                                "(a0, a1, {11}, a2);",
                                sweep->name, element, result, ofA->count, n, k, ofA->stride,
                                ofW->stride, ofC->stride, sweep->how, bias ? "true" : "false",
                                bias ? "a3" : "nullptr")
                      .str(),
                  sweep->shape, args, access, waits);
  return true;
}

} // namespace hydra::cuda
