// Gradients of embeddings on the CPU.
#include "runtime/calls/MoveCalls.h"
#include "runtime/cpu/Embedding.h"
#include "runtime/cpu/Library.h"

using namespace hydra::runtime;

namespace {

class EmbeddingGradCall final : public LibraryCall {
public:
  explicit EmbeddingGradCall(const EmbeddingGradSpec &spec) : spec(spec) {}

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &) override {
    embeddingGradient({spec.tokens, spec.rows, spec.width, spec.gradientStride},
                      {args[0], spec.wide}, reinterpret_cast<const float *>(args[1]),
                      reinterpret_cast<float *>(args[2]), pool);
  }

private:
  EmbeddingGradSpec spec;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareEmbeddingGrad(const CallSite &site) {
  return std::make_unique<EmbeddingGradCall>(describeEmbeddingGrad(site));
}
