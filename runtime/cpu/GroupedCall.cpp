// Matmuls of rows in groups on the CPU.
#include "runtime/cpu/GroupedMatmul.h"
#include "runtime/cpu/Library.h"

using namespace hydra::runtime;

namespace {

/// Arguments: two operands, offsets, result.
template <typename Kernel> class GroupedCall final : public LibraryCall {
public:
  GroupedCall(const GroupedSpec &spec, unsigned threads) : kernel(spec, threads) {}

  size_t scratchBytesPerWorker() const override { return kernel.scratchBytesPerWorker(); }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    kernel.run(args[0], args[1], reinterpret_cast<const int32_t *>(args[2]), args[3], pool,
               scratch);
  }

private:
  Kernel kernel;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareGroupedLinear(const CallSite &site,
                                                                  unsigned threads) {
  return std::make_unique<GroupedCall<GroupedLinear>>(describeGroupedLinear(site), threads);
}

std::unique_ptr<LibraryCall> hydra::runtime::prepareGroupedOuter(const CallSite &site,
                                                                 unsigned threads) {
  return std::make_unique<GroupedCall<GroupedOuter>>(describeGroupedOuter(site), threads);
}
