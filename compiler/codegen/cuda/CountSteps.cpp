// Exponents of many tensors counted in a launch.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

/// Numbers that a block counts, and tensors of a launch at most.
static constexpr int64_t kThreads = 256, kPiece = int64_t{1} << 16;
static constexpr size_t kTensors = 64;

/// Counts tensors of one format, which all begin at a multiple of 16 bytes or need not.
static void launchCounting(StepLauncher &launcher, plan::CountExponentsOp op,
                           ArrayRef<Value> tensors, bool aligned) {
  const std::string element = cType(typeOf(tensors.front()).getElementType()).str(),
                    pointer = "const " + element + " *";
  SmallVector<StringRef> parameters(tensors.size(), pointer);
  SmallVector<Value> args(tensors);
  SmallVector<int64_t> access(tensors.size(), plan::kRead);
  std::string body;
  int64_t blocks = 0, elements = 0;
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    const int64_t own = typeOf(tensor).getNumElements();
    // Each has its blocks behind those of the one before.
    body += i == 0 ? "Counted<" + element + "> of"
                   : llvm::formatv("if (blockIdx.x >= {0}) of = ", blocks).str();
    body += llvm::formatv("{{a{0}, {1}, {2}}; ", i, own, blocks).str();
    blocks += ceilDiv(own, kPiece);
    elements += own;
  }
  std::string factor = "1.0f";
  if (op.getScaled()) {
    factor = "*a" + std::to_string(args.size());
    parameters.push_back("const float *");
    args.push_back(op.getTensors().front());
    access.push_back(plan::kRead);
  }
  body +=
      llvm::formatv("countExponents<{0}, {1}, {2}, {3}>(of, {4}, a{5});",
                    static_cast<int64_t>(op.getFirst()), typeOf(op.getCounts()).getNumElements(),
                    kPiece, aligned ? "true" : "false", factor, args.size())
          .str();
  parameters.push_back("int *");
  args.push_back(op.getCounts());
  access.push_back(plan::kUpdate);
  launcher.setWork(elements, elements * elementBytes(typeOf(tensors.front()).getElementType()));
  launcher.launch("count_exponents", parameters, body, {blocks, 1, 1, kThreads, 0}, args, access);
}

void expandCountExponents(StepLauncher &launcher, plan::CountExponentsOp op) {
  constexpr int64_t kWide = 16; // bytes that a thread reads at a time
  llvm::MapVector<std::pair<Type, int64_t>, SmallVector<Value>> kinds;
  for (Value tensor : op.getTensors().drop_front(op.getScaled() ? 1 : 0))
    kinds[{typeOf(tensor).getElementType(), std::min(plan::alignmentOf(tensor), kWide)}].push_back(
        tensor);
  for (auto &[kind, all] : kinds)
    for (ArrayRef<Value> rest = all; !rest.empty();) {
      const size_t count = std::min(rest.size(), kTensors);
      launchCounting(launcher, op, rest.take_front(count), kind.second == kWide);
      rest = rest.drop_front(count);
    }
}

} // namespace hydra::cuda
