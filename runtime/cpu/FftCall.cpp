// Discrete Fourier transforms as calls of steps on the CPU.
#include "runtime/cpu/Fft.h"
#include "runtime/cpu/Library.h"

using namespace hydra::runtime;

namespace {

class FftCall final : public LibraryCall {
public:
  explicit FftCall(const FftSpec &spec) : transform(spec) {}

  size_t scratchBytesPerWorker() const override { return transform.scratchBytesPerWorker(); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    transform.run(reinterpret_cast<const float *>(args[0]), reinterpret_cast<float *>(args[1]),
                  pool, scratch);
  }

private:
  Fft transform;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareFft(const CallSite &site) {
  return std::make_unique<FftCall>(describeFft(site));
}
