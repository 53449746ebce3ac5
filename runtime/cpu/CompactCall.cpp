// The library function `compact`.
//
//   compact(mask, index, place, count)   index: the numbers of rows whose mask is true, then -1;
//                                        place: where a row stands in index, or -1
//
// mask [N] boolean, index and place [N] i32, count [] i32, all dense.
#include "runtime/cpu/Library.h"
#include "runtime/support/Safetensors.h"

#include <algorithm>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

class CompactCall final : public LibraryCall {
public:
  explicit CompactCall(const CallSite &site) {
    site.argumentCount(4, 4);
    const TensorShape mask = site.tensor(0, "mask", 1, DType::Bool);
    rows = mask.sizes[0];
    for (const size_t i : {1, 2}) {
      const TensorShape numbers = site.tensor(i, i == 1 ? "index" : "place", 1, DType::I32);
      if (numbers.sizes != mask.sizes || !numbers.isDense() || !mask.isDense())
        site.fail("argument {} has shape {}; expected a dense {}", i,
                  support::shapeText(numbers.sizes), support::shapeText(mask.sizes));
    }
    site.tensor(3, "count", 0, DType::I32);
  }

  void run(char *const *args, ThreadPool &, const WorkerScratch &) override {
    const char *mask = args[0];
    auto *index = reinterpret_cast<int32_t *>(args[1]);
    auto *place = reinterpret_cast<int32_t *>(args[2]);
    int32_t count = 0;
    for (int64_t i = 0; i < rows; ++i) {
      place[i] = mask[i] ? count : -1;
      if (mask[i])
        index[count++] = static_cast<int32_t>(i);
    }
    std::fill(index + count, index + rows, -1);
    *reinterpret_cast<int32_t *>(args[3]) = count;
  }

private:
  int64_t rows = 0;
};

} // namespace

void hydra::runtime::addCompact(Library &library) {
  library.add("compact", [](const CallSite &site) { return std::make_unique<CompactCall>(site); });
}
