// Ids drawn from scores as one launch, of a cluster of blocks for each sequence.
#include "compiler/codegen/cuda/StepLauncher.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hydra::cuda {

void expandSample(StepLauncher &launcher, plan::SampleOp op) {
  constexpr int64_t kThreads = 1024, kMostBlocks = 8, kOfThread = 8, kMostHeld = 32;
  const int64_t batch = typeOf(op.getScores()).getDimSize(0),
                ids = typeOf(op.getScores()).getDimSize(1),
                tokens = typeOf(op.getTokens()).getDimSize(1);
  // Eight ids a thread, if as many blocks can work together.
  int64_t blocks = 1;
  if (launcher.target.has(kClusters))
    while (blocks < kMostBlocks && blocks * kThreads * kOfThread < ids)
      blocks *= 2;
  const int64_t each = ceilDiv(ids, blocks * kThreads);
  LaunchShape shape{blocks * batch, 1, 1, kThreads, 0};
  shape.cluster = blocks;
  launcher.launch("sample",
                  {"const float *", "const int *", "const float *", "const float *", "const int *",
                   "int *", "unsigned *"},
                  llvm::formatv("Sampler<{0}, {1}, {2}, {3}, {4}>(a0, a6).run(a1, a2, a3, a4, a5);",
                                ids, tokens, blocks, each, each <= kMostHeld ? "true" : "false")
                      .str(),
                  shape,
                  {op.getScores(), op.getTokens(), op.getPosition(), op.getSettings(), op.getDraw(),
                   op.getToken(), op.getSeen()},
                  {plan::kRead, plan::kRead, plan::kRead, plan::kRead, plan::kRead, plan::kWrite,
                   plan::kUpdate});
}

} // namespace hydra::cuda
