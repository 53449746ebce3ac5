// The library functions `copy` and `fill`.
//
//   copy(source, target)   same shape and dtype, any strides; the two share no byte
//   fill(target)           attribute: value (real), rounded to the dtype; any strides
#include "runtime/cpu/Copy.h"
#include "runtime/cpu/Library.h"
#include "runtime/support/Safetensors.h"

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

std::unique_ptr<LibraryCall> makeCopy(const CallSite &site) {
  site.argumentCount(2, 2);
  const TensorShape source = site.tensor(0, "source"), target = site.tensor(1, "target");
  if (source.sizes != target.sizes || source.dtype != target.dtype) {
    site.fail("source {} of {}, target {} of {}; expected the same",
              support::shapeText(source.sizes), support::irName(source.dtype),
              support::shapeText(target.sizes), support::irName(target.dtype));
  }
  return std::make_unique<CopyCall>(
      StridedCopy(target.sizes, target.strides, source.strides, support::byteSize(target.dtype)));
}

std::unique_ptr<LibraryCall> makeFill(const CallSite &site) {
  site.argumentCount(1, 1);
  return std::make_unique<FillCall>(site.tensor(0, "target"), site.attributes.real("value"));
}

} // namespace

void hydra::runtime::addCopy(Library &library) {
  library.add("copy", makeCopy);
  library.add("fill", makeFill);
}
