// Copies and fills, several of them in a launch, compaction of rows and gradients of embeddings as
// instances of templates.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace hydra::cuda {

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

constexpr int64_t kThreads = 256;

/// A copy or fill as blocks of 256 threads that call a function of a template.
struct Movement {
  Movement(StringRef name, Value to, Value from) : name(name), to(to), from(from) {}

  StringRef name;       ///< of the step
  std::string piece;    ///< what it moves at a time
  std::string function; ///< with its template's arguments
  std::string value;    ///< for a fill
  int64_t blocks = 0;
  Value to, from; ///< no source: a fill
};

int64_t blocksFor(int64_t elements) { return ceilDiv(elements, kThreads); }

/// Whether both sides can be met in vectors of so many bytes.
bool hasVectors(const Movement &move, ArrayRef<Dim> dims, const Dim *inTo, const Dim *inFrom,
                int64_t bytes) {
  const int64_t each = bytes / elementBytes(typeOf(move.to).getElementType());
  return inTo->size % each == 0 && inFrom->size % each == 0 &&
         std::min(plan::alignmentOf(move.to), plan::alignmentOf(move.from)) >= bytes &&
         llvm::all_of(dims, [&](const Dim &dim) {
           return (&dim == inTo || dim.to % each == 0) && (&dim == inFrom || dim.from % each == 0);
         });
}

/// A copy by squares if elements lie side by side in different dimensions of both sides.
bool transposes(Movement &move, ArrayRef<Dim> dims) {
  constexpr int64_t kLeast = 8; // what is worth a square
  const Dim *inTo = llvm::find_if(dims, [](const Dim &dim) { return dim.to == 1; });
  const Dim *inFrom = llvm::find_if(dims, [](const Dim &dim) { return dim.from == 1; });
  if (inTo == dims.end() || inFrom == dims.end() || inTo == inFrom || inTo->size < kLeast ||
      inFrom->size < kLeast)
    return false;
  SmallVector<Dim> order{*inTo, *inFrom};
  constexpr int64_t kWord = 4, kVector = 16;
  const int64_t bytes = elementBytes(typeOf(move.to).getElementType());
  const bool words = bytes < kWord && hasVectors(move, dims, inTo, inFrom, kWord);
  const bool vectors = words && hasVectors(move, dims, inTo, inFrom, kVector);
  const int64_t side = 32 * (words ? kWord / bytes : 1);
  move.blocks = ceilDiv(inTo->size, side) * ceilDiv(inFrom->size, side);
  for (const Dim &dim : dims)
    if (&dim != inTo && &dim != inFrom) {
      order.push_back(dim);
      move.blocks *= dim.size;
    }
  move.name = "transpose";
  const StringRef met = vectors ? "Vectors" : words ? "Words" : "";
  move.function =
      llvm::formatv("copyTransposed{0}<{1}{2}>", met, move.piece, dimsText(order)).str();
  return true;
}

Movement movementOf(plan::CopyOp op) {
  Value from = op.getFrom(), to = op.getTo();
  Movement move("copy", to, from);
  Type element = typeOf(to).getElementType();
  SmallVector<Dim> dims =
      mergedDims(typeOf(to).getShape(), plan::stridesOf(typeOf(to)), plan::stridesOf(typeOf(from)));
  // Pieces of up to 16 bytes where both sides have them.
  const int64_t bytes = elementBytes(element);
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
  move.piece = pieces.at(width * bytes);
  if (width == 1 && transposes(move, dims))
    return move;
  int64_t count = 1;
  for (const Dim &dim : dims)
    count *= dim.size;
  move.function =
      llvm::formatv("copyElements<{0}, {1}{2}>", move.piece, count, dimsText(dims)).str();
  move.blocks = blocksFor(count);
  return move;
}

Movement movementOf(plan::FillOp op) {
  Value to = op.getTo();
  Movement move("fill", to, Value());
  const double value = op.getValue().convertToDouble();
  Type element = typeOf(to).getElementType();
  SmallVector<int64_t> strides = plan::stridesOf(typeOf(to));
  SmallVector<Dim> dims = mergedDims(typeOf(to).getShape(), strides, strides);
  int64_t count = typeOf(to).getNumElements();
  if (isNarrowFloat(element) || isEightBitFloat(element)) { // by its bits
    llvm::APFloat x(value);
    bool inexact;
    x.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
              &inexact);
    move.value =
        llvm::formatv("{0}{{{1}}", cType(element), x.bitcastToAPInt().getZExtValue()).str();
  } else if (isa<IntegerType>(element)) { // of which f32 has not all
    move.value = llvm::formatv("({0}){1}", cType(element), static_cast<int64_t>(value)).str();
  } else {
    move.value = std::isinf(value) ? (value < 0 ? "-INFINITY" : "INFINITY") : numberText(value);
    move.value = llvm::formatv("{0}({1})", cType(element), move.value).str();
  }
  move.piece = cType(element).str();
  move.function =
      llvm::formatv("fillElements<{0}, {1}{2}>", move.piece, count, dimsText(dims)).str();
  move.blocks = blocksFor(count);
  return move;
}

Movement movementOf(plan::StepInterface step) {
  if (auto copy = dyn_cast<plan::CopyOp>(step.getOperation()))
    return movementOf(copy);
  return movementOf(cast<plan::FillOp>(step.getOperation()));
}

} // namespace

void expandMovements(StepLauncher &launcher, ArrayRef<plan::StepInterface> steps) {
  launcher.take(steps.drop_front());
  SmallVector<Movement> moves = llvm::map_to_vector(
      steps, [](plan::StepInterface step) -> Movement { return movementOf(step); });
  std::string body;
  SmallVector<std::string> parameters;
  SmallVector<Value> args;
  SmallVector<int64_t> access;
  auto add = [&](Value arg, const std::string &type, int64_t kind) {
    parameters.push_back(type);
    args.push_back(arg);
    access.push_back(kind);
    return "a" + std::to_string(args.size() - 1);
  };
  int64_t blocks = 0;
  for (const Movement &move : moves) {
    std::string of = add(move.to, move.piece + " *", plan::kWrite);
    of +=
        ", " + (move.from ? add(move.from, "const " + move.piece + " *", plan::kRead) : move.value);
    // Each has its blocks behind those of the one before.
    const bool last = &move == &moves.back();
    if (!last)
      body += llvm::formatv("if (blockIdx.x < {0}) ", blocks + move.blocks).str();
    body += llvm::formatv("{0}{1}(blockIdx.x - {2}, {3});", last ? "" : "return ", move.function,
                          blocks, of)
                .str();
    if (!last)
      body += " ";
    blocks += move.blocks;
  }
  launcher.launch(
      moves.size() > 1 ? "copies" : moves.front().name,
      llvm::map_to_vector(parameters, [](const std::string &p) -> StringRef { return p; }), body,
      {blocks, 1, 1, kThreads, 0}, args, access);
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
  // A text has some ids so often that a block would add up their gradients for milliseconds. A
  // second launch has them, of which there are at most 512 and what blocks leave that have too many
  // tokens for their lists.
  constexpr int64_t kFewTokens = 512, kListed = 2048, kLeastFrequent = 64, kMostFrequentIds = 512;
  const bool hasFrequent = count > kFewTokens;
  const int64_t most =
      hasFrequent ? std::clamp(count / kMostFrequentIds, kLeastFrequent, kListed) : count;
  SmallVector<Value> args = {tokens, dx, grad};
  SmallVector<int64_t> access = {plan::kRead, plan::kRead, plan::kWrite};
  SmallVector<StringRef> parameters = {"const int *", "const float *", "float *"};
  if (hasFrequent) {
    const int64_t left = count / (most + 1) + (count / (kListed / 2) + 1) * each;
    args.push_back(launcher.ownCounters(2));
    args.push_back(launcher.workspace({std::min(left, table)}, launcher.b.getI32Type()));
    access.append({plan::kUpdate, plan::kWrite});
    parameters.append({"int *", "int *"});
  }
  launcher.launch("embedding_grad", parameters,
                  llvm::formatv("embeddingGradient<{0}, {1}, {2}, {3}, {4}, {5}>(a0, a1, a2, {6});",
                                count, table, width, stride, each, most,
                                hasFrequent ? "a3, a4" : "nullptr, nullptr")
                      .str(),
                  {ceilDiv(table, each), 1, 1, 256, 0}, args, access);
  if (!hasFrequent)
    return success();
  const auto isWhole = [&](int64_t multiple) { // of 4 numbers
    return width % multiple == 0 && stride % multiple == 0 &&
           plan::alignmentOf(dx) % (4 * multiple) == 0 &&
           plan::alignmentOf(grad) % (4 * multiple) == 0;
  };
  access = {plan::kRead, plan::kRead, plan::kUpdate, plan::kUpdate, plan::kRead};
  const int64_t blocks = 2 * std::max<int64_t>(launcher.target.getMultiprocessors(), 32);
  launcher.launch(
      "frequent_embedding_grad", parameters,
      llvm::formatv("frequentEmbeddingGradient<{0}, {1}, {2}, {3}>(a0, a1, a2, a3, a4);", count,
                    width, stride, isWhole(4) ? 4 : 1)
          .str(),
      {blocks, 1, 1, 512, 0}, args, access);
  return success();
}

} // namespace hydra::cuda
