// The library function `embedding_grad`.
//
//   embedding_grad(tokens, dx, grad)   grad[v] = sum of dx[t] over tokens[t] == v
//
// tokens [...] i32 or i64, dense; dx [..., D] f32, leading dimensions as tokens and mergeable into
// rows, last one dense; grad [V, D] f32, dense.
#include "runtime/cpu/Embedding.h"
#include "runtime/cpu/Library.h"
#include "runtime/support/Safetensors.h"

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

class EmbeddingGradCall final : public LibraryCall {
public:
  explicit EmbeddingGradCall(const CallSite &site) {
    site.argumentCount(3, 3);
    const TensorShape tokens = site.tensor(0, "tokens");
    const TensorShape dx = site.tensor(1, "dx", static_cast<int>(tokens.rank()) + 1, DType::F32);
    const TensorShape grad = site.tensor(2, "grad", 2, DType::F32);
    if (tokens.dtype != DType::I32 && tokens.dtype != DType::I64)
      site.fail("tokens are {}; expected i32 or i64", support::irName(tokens.dtype));
    wide = tokens.dtype == DType::I64;
    std::vector<int64_t> expected = tokens.sizes;
    expected.push_back(grad.sizes[1]);
    if (dx.sizes != expected)
      site.fail("dx has shape {}; expected {}", support::shapeText(dx.sizes),
                support::shapeText(expected));
    if (!tokens.isDense() || !grad.isDense())
      site.fail("tokens and grad must be dense");

    shape = {tokens.elements(), grad.sizes[0], grad.sizes[1], grad.sizes[1]};
    int64_t merged = 1;
    for (size_t d = tokens.rank(); d-- > 0;) {
      if (dx.sizes[d] == 1)
        continue;
      if (merged == 1)
        shape.gradientStride = dx.strides[d];
      else if (dx.strides[d] != merged * shape.gradientStride)
        merged = 0;
      merged *= dx.sizes[d];
    }
    if (merged == 0 || (dx.strides.back() != 1 && dx.sizes.back() != 1))
      site.fail("dx has strides {}; expected rows of dense numbers at one distance",
                support::shapeText(dx.strides));
  }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &) override {
    embeddingGradient(shape, {args[0], wide}, reinterpret_cast<const float *>(args[1]),
                      reinterpret_cast<float *>(args[2]), pool);
  }

private:
  EmbeddingShape shape;
  bool wide = false;
};

} // namespace

void hydra::runtime::addEmbedding(Library &library) {
  library.add("embedding_grad",
              [](const CallSite &site) { return std::make_unique<EmbeddingGradCall>(site); });
}
