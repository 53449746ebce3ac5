// Parts of the oracle's tensors.
#include "dialects/hydra/Reference.h"

#include "runtime/support/Int4Groups.h"

using namespace llvm;

namespace hydra {

/// Calls `copy` for every run of elements of `part`, which lies in `whole` from `start` along an
/// axis.
template <typename Whole, typename Part, typename Copy>
static void forRuns(Whole &whole, Part &part, int64_t axis, int64_t start, Copy copy) {
  const int64_t run = productOf(ArrayRef<int64_t>(part.shape).drop_front(axis)),
                runs = productOf(ArrayRef<int64_t>(part.shape).take_front(axis));
  if (run == 0)
    return;
  const int64_t row = run / part.shape[axis], stride = row * whole.shape[axis];
  for (int64_t r = 0; r < runs; ++r)
    copy(whole.data.data() + r * stride + start * row, part.data.data() + r * run, run);
}

void takePiece(const RefTensor &whole, RefTensor &part, int64_t axis, int64_t start) {
  forRuns(whole, part, axis, start,
          [](const double *from, double *to, int64_t n) { std::copy_n(from, n, to); });
}

void putPiece(RefTensor &whole, const RefTensor &part, int64_t axis, int64_t start) {
  forRuns(whole, part, axis, start,
          [](double *to, const double *from, int64_t n) { std::copy_n(from, n, to); });
}

RefTensor unpackedInt4(const RefTensor &bytes, const RefTensor &scales) {
  RefTensor numbers({bytes.rows(), 2 * bytes.cols()});
  for (int64_t i = 0; i < bytes.size(); ++i) {
    const int64_t group = i / support::kInt4Bytes;
    const support::Int4Pair pair = support::unpackInt4(static_cast<int8_t>(bytes.data[i]));
    double *to = &numbers.data[group * support::kInt4Group + i % support::kInt4Bytes];
    to[0] = pair.first * scales.data[group];
    to[support::kInt4Bytes] = pair.second * scales.data[group];
  }
  return numbers;
}

} // namespace hydra
