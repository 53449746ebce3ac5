// Exponents counted on the CPU: pieces of tensors are tasks, and each worker has counters.
#include "runtime/calls/CountCall.h"
#include "runtime/cpu/Library.h"
#include "runtime/support/ExponentCounts.h"

#include <algorithm>
#include <cstring>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

class CountExponentsCall final : public LibraryCall {
public:
  explicit CountExponentsCall(const CountExponentsSpec &spec) : spec(spec) {
    for (size_t i = 0; i < spec.tensors.size(); ++i)
      for (int64_t from = 0; from < spec.tensors[i].elements; from += kPiece)
        pieces.push_back({i, from, std::min(kPiece, spec.tensors[i].elements - from)});
  }

  size_t scratchBytesPerWorker() const override {
    return static_cast<size_t>(spec.counters) * sizeof(int32_t);
  }

  void run(char *const *args, ThreadPool &pool, const WorkerScratch &scratch) override {
    const auto ownCounts = [&](unsigned worker) {
      return reinterpret_cast<int32_t *>(scratch.of(worker));
    };
    float factor = 1.0F;
    if (spec.scaled)
      std::memcpy(&factor, args[0], sizeof factor);
    char *const *tensors = args + (spec.scaled ? 1 : 0);
    for (unsigned worker = 0; worker < pool.threads(); ++worker)
      std::fill_n(ownCounts(worker), spec.counters, 0);
    pool.parallelFor(static_cast<int64_t>(pieces.size()), [&](int64_t i, unsigned worker) {
      const Piece &piece = pieces[static_cast<size_t>(i)];
      countPiece(piece, tensors[piece.tensor], factor, ownCounts(worker));
    });
    auto *counts = reinterpret_cast<int32_t *>(args[spec.tensors.size() + (spec.scaled ? 1 : 0)]);
    for (unsigned worker = 0; worker < pool.threads(); ++worker)
      for (int64_t counter = 0; counter < spec.counters; ++counter)
        counts[counter] += ownCounts(worker)[counter];
  }

private:
  /// Elements of a task.
  static constexpr int64_t kPiece = int64_t{1} << 16;

  struct Piece {
    size_t tensor;
    int64_t from, elements;
  };

  void countPiece(const Piece &piece, const char *tensor, float factor, int32_t *counts) const {
    switch (spec.tensors[piece.tensor].dtype) {
    case DType::BF16:
      return count<uint16_t>(piece, tensor, factor, counts, support::bf16ToFloat);
    case DType::F16:
      return count<uint16_t>(piece, tensor, factor, counts, support::f16ToFloat);
    default: // its description lets nothing else pass
      return count<float>(piece, tensor, factor, counts, [](float x) { return x; });
    }
  }

  template <typename T, typename Widen>
  void count(const Piece &piece, const char *tensor, float factor, int32_t *counts,
             Widen widen) const {
    const T *numbers = reinterpret_cast<const T *>(tensor) + piece.from;
    for (int64_t i = 0; i < piece.elements; ++i)
      ++counts[support::exponentCounter(widen(numbers[i]) * factor, spec.first, spec.counters)];
  }

  CountExponentsSpec spec;
  std::vector<Piece> pieces;
};

} // namespace

std::unique_ptr<LibraryCall> hydra::runtime::prepareCountExponents(const CallSite &site) {
  return std::make_unique<CountExponentsCall>(describeCountExponents(site));
}
