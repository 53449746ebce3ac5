// Gradients of embeddings on the CPU.
#include "runtime/calls/MoveCalls.h"
#include "runtime/cpu/Embedding.h"
#include "runtime/cpu/Library.h"
#include "runtime/run/BadValue.h"
#include "runtime/support/PlaceText.h"

using namespace hydra::runtime;

namespace {

class EmbeddingGradCall final : public LibraryCall {
public:
  explicit EmbeddingGradCall(const CallSite &site)
      : spec(describeEmbeddingGrad(site)), shape(site.tensor(0, "tokens").sizes),
        place(site.modelPlace()) {}

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &) override {
    const TokenIds ids{args[0], spec.wide};
    check(ids);
    embeddingGradient({spec.tokens, spec.rows, spec.width, spec.gradientStride}, ids,
                      reinterpret_cast<const float *>(args[1]), reinterpret_cast<float *>(args[2]),
                      pool);
  }

private:
  /// Ids that are given have been checked; others are computed.
  void check(TokenIds ids) const {
    for (int64_t t = 0; t < spec.tokens; ++t)
      if (const int64_t id = ids[t]; id < 0 || id >= spec.rows)
        throw BadValue(fmt::format("{}: the id{} of an embedding = {} is not in [0, {})", place,
                                   hydra::support::placeText(shape, t), id, spec.rows));
  }

  EmbeddingGradSpec spec;
  std::vector<int64_t> shape; ///< of the ids
  std::string place;          ///< in the model
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareEmbeddingGrad(const CallSite &site) {
  return std::make_unique<EmbeddingGradCall>(site);
}
