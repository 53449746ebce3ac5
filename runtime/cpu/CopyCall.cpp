// Copies, transfers and fills on the CPU.
#include "runtime/calls/MoveCalls.h"
#include "runtime/cpu/Copy.h"
#include "runtime/cpu/Library.h"

#include <array>
#include <span>

using namespace hydra::runtime;
namespace support = hydra::support;

namespace {

class CopyCall final : public LibraryCall {
public:
  explicit CopyCall(StridedCopy copy) : copy(std::move(copy)) {}

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &) override {
    copy.run(args[1], args[0], pool);
  }

private:
  StridedCopy copy;
};

class FillCall final : public LibraryCall {
public:
  FillCall(const TensorShape &target, double value)
      : copy(target.sizes, target.strides, std::vector<int64_t>(target.rank(), 0),
             support::byteSize(target.dtype)) {
    support::fromDoubles(target.dtype, std::span(&value, 1),
                         std::span(element).first(support::byteSize(target.dtype)));
  }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &) override {
    copy.run(args[0], element.data(), pool);
  }

private:
  StridedCopy copy;
  alignas(8) std::array<std::byte, 8> element{};
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareCopy(const CallSite &site) {
  const CopySpec spec = describeCopy(site);
  return std::make_unique<CopyCall>(StridedCopy(spec.target.sizes, spec.target.strides,
                                                spec.source.strides,
                                                support::byteSize(spec.target.dtype)));
}

/// Both memories are the CPU's.
std::unique_ptr<LibraryCall> hydra::runtime::prepareTransfer(const CallSite &site) {
  const std::vector<int64_t> bytes = {static_cast<int64_t>(describeTransfer(site).bytes)},
                             dense = {1};
  return std::make_unique<CopyCall>(StridedCopy(bytes, dense, dense, 1));
}

std::unique_ptr<LibraryCall> hydra::runtime::prepareFill(const CallSite &site) {
  const FillSpec spec = describeFill(site);
  return std::make_unique<FillCall>(spec.target, spec.value);
}
