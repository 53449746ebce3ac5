// Matmuls: of few rows by a sweep over the matrix, others by oneDNN.
#include "runtime/cpu/FewRows.h"
#include "runtime/cpu/Library.h"
#include "runtime/cpu/Matmul.h"

using namespace hydra::runtime;

namespace {

class MatmulCall final : public LibraryCall {
public:
  MatmulCall(const MatmulSpec &spec, unsigned threads)
      : matmul(spec, threads), hasBias(spec.hasBias), scaled(spec.scaled()), scales(spec.scales()),
        result(spec.result()) {}

  size_t scratchBytesPerWorker() const override { return matmul.scratchBytesPerWorker(); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    const void *bias = hasBias ? args[2] : nullptr;
    if (scaled)
      matmul.setScales(reinterpret_cast<const float *>(args[scales]),
                       reinterpret_cast<const float *>(args[scales + 1]));
    matmul.run(args[0], args[1], bias, args[result], pool, scratch);
  }

private:
  Matmul matmul;
  bool hasBias, scaled;
  size_t scales, result;
};

class FewRowsCall final : public LibraryCall {
public:
  explicit FewRowsCall(const MatmulSpec &spec)
      : matmul(spec), hasBias(spec.hasBias), hasScale(spec.hasWeightScale),
        scale(spec.weightScale()), result(spec.result()) {}

  size_t scratchBytesPerWorker() const override { return matmul.scratchBytesPerWorker(); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    matmul.run(args[0], args[1], hasBias ? args[2] : nullptr, hasScale ? args[scale] : nullptr,
               args[result], pool, scratch);
  }

private:
  FewRows matmul;
  bool hasBias, hasScale;
  size_t scale, result;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareMatmul(const CallSite &site, unsigned threads) {
  MatmulSpec spec = describeMatmul(site);
  if (spec.gelu)
    site.fail("matmuls with gelu have no CPU form");
  spec.widen = !hasBf16Matmuls();
  if (isFewRows(spec))
    return std::make_unique<FewRowsCall>(spec);
  return std::make_unique<MatmulCall>(spec, threads);
}
