// Copies, fills, compaction of rows and gradients of embeddings as instances of templates.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace hydra::cuda {

static unsigned bytesOf(Type element) { return std::max(1u, element.getIntOrFloatBitWidth() / 8); }

namespace {

struct Dim {
  int64_t size, to, from;
};

/// The dimensions of a copy, merged where both sides allow.
SmallVector<Dim> mergedDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> to, ArrayRef<int64_t> from) {
  SmallVector<Dim> dims;
  for (auto [size, t, f] : llvm::zip(shape, to, from)) {
    if (size == 1)
      continue;
    if (!dims.empty() && dims.back().to == size * t && dims.back().from == size * f)
      dims.back() = {dims.back().size * size, t, f};
    else
      dims.push_back({size, t, f});
  }
  return dims;
}

std::string dimsText(ArrayRef<Dim> dims) {
  std::string text;
  for (const Dim &dim : dims)
    text += llvm::formatv(", Dim<{0}, {1}, {2}>", dim.size, dim.to, dim.from).str();
  return text;
}

LaunchShape elementShape(int64_t count) { return {ceilDiv(count, 256), 1, 1, 256, 0}; }

/// Launches a copy by squares if elements lie side by side in different dimensions of both sides.
bool transposes(StepLauncher &launcher, ArrayRef<Dim> dims, StringRef piece, Value to, Value from) {
  constexpr int64_t kLeast = 8, kSide = 32; // what is worth a square, and its side
  const Dim *inTo = llvm::find_if(dims, [](const Dim &dim) { return dim.to == 1; });
  const Dim *inFrom = llvm::find_if(dims, [](const Dim &dim) { return dim.from == 1; });
  if (inTo == dims.end() || inFrom == dims.end() || inTo == inFrom || inTo->size < kLeast ||
      inFrom->size < kLeast)
    return false;
  SmallVector<Dim> order{*inTo, *inFrom};
  int64_t blocks = ceilDiv(inTo->size, kSide) * ceilDiv(inFrom->size, kSide);
  for (const Dim &dim : dims)
    if (&dim != inTo && &dim != inFrom) {
      order.push_back(dim);
      blocks *= dim.size;
    }
  launcher.launch("transpose", {(piece + " *").str(), ("const " + piece + " *").str()},
                  llvm::formatv("copyTransposed<{0}{1}>(a0, a1);", piece, dimsText(order)).str(),
                  {blocks, 1, 1, 256, 0}, {to, from}, {plan::kWrite, plan::kRead});
  return true;
}

} // namespace

void expandCopy(StepLauncher &launcher, plan::CopyOp op) {
  Value from = op.getFrom(), to = op.getTo();
  Type element = typeOf(to).getElementType();
  SmallVector<Dim> dims =
      mergedDims(typeOf(to).getShape(), plan::stridesOf(typeOf(to)), plan::stridesOf(typeOf(from)));
  // Pieces of up to 16 bytes where both sides have them.
  unsigned bytes = bytesOf(element);
  int64_t width = 16 / bytes;
  auto fits = [&](int64_t w) {
    if (dims.empty() || dims.back().to != 1 || dims.back().from != 1 || dims.back().size % w ||
        std::min(plan::alignmentOf(to), plan::alignmentOf(from)) < w * bytes)
      return false;
    return llvm::all_of(ArrayRef(dims).drop_back(),
                        [&](const Dim &dim) { return dim.to % w == 0 && dim.from % w == 0; });
  };
  while (width > 1 && !fits(width))
    width /= 2;
  if (width > 1) {
    dims.back().size /= width;
    for (Dim &dim : MutableArrayRef(dims).drop_back()) {
      dim.to /= width;
      dim.from /= width;
    }
  }
  static const std::map<int64_t, StringRef> pieces = {
      {1, "unsigned char"}, {2, "unsigned short"}, {4, "uint32"}, {8, "uint2"}, {16, "uint4"}};
  StringRef piece = pieces.at(width * bytes);
  if (width == 1 && transposes(launcher, dims, piece, to, from))
    return;
  int64_t count = 1;
  for (const Dim &dim : dims)
    count *= dim.size;
  launcher.launch(
      "copy", {(piece + " *").str(), ("const " + piece + " *").str()},
      llvm::formatv("copyElements<{0}, {1}{2}>(a0, a1);", piece, count, dimsText(dims)).str(),
      elementShape(count), {to, from}, {plan::kWrite, plan::kRead});
}

void expandFill(StepLauncher &launcher, plan::FillOp op) {
  Value to = op.getTo();
  const double value = op.getValue().convertToDouble();
  Type element = typeOf(to).getElementType();
  SmallVector<int64_t> strides = plan::stridesOf(typeOf(to));
  SmallVector<Dim> dims = mergedDims(typeOf(to).getShape(), strides, strides);
  int64_t count = typeOf(to).getNumElements();
  std::string text;
  if (isNarrowFloat(element)) { // by its bits
    llvm::APFloat x(value);
    bool inexact;
    x.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
              &inexact);
    text = llvm::formatv("{0}{{{1}}", cType(element), x.bitcastToAPInt().getZExtValue()).str();
  } else {
    text = llvm::formatv(
               "{0}({1})", cType(element) == "unsigned char" ? "(unsigned char)" : cType(element),
               std::isinf(value) ? (value < 0 ? "-INFINITY" : "INFINITY") : numberText(value))
               .str();
  }
  launcher.launch("fill", {(cType(element) + " *").str()},
                  llvm::formatv("fillElements<{0}, {1}{2}>(a0, {3});", cType(element), count,
                                dimsText(dims), text)
                      .str(),
                  elementShape(count), {to}, {plan::kWrite});
}

void expandCompact(StepLauncher &launcher, plan::CompactOp op) {
  launcher.launch(
      "compact", {"const unsigned char *", "int *", "int *", "int *"},
      llvm::formatv("compactRows<{0}>(a0, a1, a2, a3);", typeOf(op.getMask()).getNumElements())
          .str(),
      {1, 1, 1, 1024, 0}, llvm::to_vector(op->getOperands()),
      {plan::kRead, plan::kWrite, plan::kWrite, plan::kWrite});
}

LogicalResult expandEmbeddingGrad(StepLauncher &launcher, plan::EmbeddingGradOp op) {
  Value tokens = op.getTokens(), dx = op.getDx(), grad = op.getGrad();
  SmallVector<int64_t> strides = plan::stridesOf(typeOf(dx));
  int64_t count = typeOf(tokens).getNumElements(), width = typeOf(grad).getDimSize(1);
  SmallVector<Dim> rows = mergedDims(typeOf(dx).getShape().drop_back(),
                                     ArrayRef(strides).drop_back(), ArrayRef(strides).drop_back());
  if (rows.size() > 1 || (width > 1 && strides.back() != 1))
    return op.emitError("the gradient of an embedding has rows at several distances");
  int64_t stride = rows.empty() ? width : rows.front().to;
  // Every block reads all ids: as many rows of the table each as keep that below 256 MiB.
  int64_t table = typeOf(grad).getDimSize(0);
  int64_t each = std::clamp<int64_t>(ceilDiv(4 * table * count, 256 << 20), 1, 255);
  launcher.launch("embedding_grad", {"const int *", "const float *", "float *"},
                  llvm::formatv("embeddingGradient<{0}, {1}, {2}, {3}, {4}>(a0, a1, a2);", count,
                                table, width, stride, each)
                      .str(),
                  {ceilDiv(table, each), 1, 1, 256, 0}, {tokens, dx, grad},
                  {plan::kRead, plan::kRead, plan::kWrite});
  return success();
}

} // namespace hydra::cuda
