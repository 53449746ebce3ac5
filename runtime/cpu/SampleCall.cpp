// Ids drawn from scores, on the CPU: a task for each sequence.
#include "runtime/calls/SampleCall.h"
#include "runtime/cpu/Library.h"
#include "runtime/support/Sampling.h"

#include <algorithm>
#include <span>

using namespace hydra::runtime;
namespace support = hydra::support;

namespace {

class SampleCall final : public LibraryCall {
public:
  explicit SampleCall(const SampleSpec &spec) : spec(spec) {}

  size_t scratchBytesPerWorker() const override {
    return static_cast<size_t>(spec.ids) * sizeof(uint32_t);
  }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    pool.parallelFor(spec.batch, [&](int64_t b, unsigned worker) {
      draw(args, b, reinterpret_cast<uint32_t *>(scratch.of(worker)));
    });
  }

private:
  template <typename T> static T *row(char *from, int64_t b, int64_t width) {
    return reinterpret_cast<T *>(from) + b * width;
  }

  void draw(char *const *args, int64_t b, uint32_t *keys) const {
    int32_t &token = *row<int32_t>(args[5], b, 1);
    const float position = *row<float>(args[2], b, 1);
    token = 0;
    if (!(position >= 0))
      return;
    const int64_t words = support::seenWords(spec.ids);
    const std::span seen(row<uint32_t>(args[6], b, words), static_cast<size_t>(words));
    if (position == 0)
      std::ranges::fill(seen, 0);
    const int32_t *tokens = row<int32_t>(args[1], b, spec.tokens);
    for (int64_t t = 0; t < spec.tokens; ++t)
      support::markSeen(seen, spec.ids, tokens[t]);
    const float *s = row<float>(args[3], b, kSamplingSettings);
    const uint32_t *d = row<uint32_t>(args[4], b, kSamplingDraw);
    const auto ids = static_cast<size_t>(spec.ids);
    token = support::sampleToken(
        std::span(row<float>(args[0], b, spec.ids), ids), seen, {s[0], s[1], s[2], s[3], s[4]},
        support::SamplingDraw{d[0], d[1], d[2], d[3]}.bits(), std::span(keys, ids));
  }

  SampleSpec spec;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareSample(const CallSite &site) {
  return std::make_unique<SampleCall>(describeSample(site));
}
