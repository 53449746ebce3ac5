// Compaction of rows on the CPU.
#include "runtime/calls/MoveCalls.h"
#include "runtime/cpu/Library.h"

#include <algorithm>

using namespace hydra::runtime;

namespace {

class CompactCall final : public LibraryCall {
public:
  explicit CompactCall(const CompactSpec &spec) : rows(spec.rows) {}

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
  int64_t rows;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareCompact(const CallSite &site) {
  return std::make_unique<CompactCall>(describeCompact(site));
}
