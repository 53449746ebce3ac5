// Attention over slots against attention of whole sequences in double, in calls of several lengths.
#include "runtime/cpu/CachedAttention.h"
#include "runtime/support/DType.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace hydra::runtime;
namespace support = hydra::support;

namespace {

template <typename T> support::DType dtypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return support::DType::F32;
  else if constexpr (std::is_same_v<T, BF16>)
    return support::DType::BF16;
  else
    return support::DType::F16;
}

/// Numbers of T from doubles, and back.
template <typename T> std::vector<T> rounded(const std::vector<double> &values) {
  std::vector<T> result(values.size());
  support::fromDoubles(dtypeOf<T>(), values, std::as_writable_bytes(std::span(result)));
  return result;
}
template <typename T> std::vector<double> widened(const std::vector<T> &values) {
  std::vector<double> result(values.size());
  support::toDoubles(dtypeOf<T>(), std::as_bytes(std::span(values)), result);
  return result;
}

/// Rows [batch, tokens, heads, width] of whole sequences.
struct Rows {
  int64_t tokens, heads, width;
  std::vector<double> values;

  template <typename T>
  static Rows random(int64_t batch, int64_t tokens, int64_t heads, int64_t width,
                     std::mt19937 &generator) {
    std::normal_distribution<double> normal;
    Rows rows{tokens, heads, width,
              std::vector<double>(static_cast<size_t>(batch * tokens * heads * width))};
    for (double &x : rows.values)
      x = normal(generator);
    rows.values = widened(rounded<T>(rows.values));
    return rows;
  }
  double at(int64_t b, int64_t t, int64_t h, int64_t e) const {
    return values[static_cast<size_t>(((b * tokens + t) * heads + h) * width + e)];
  }
};

struct Case {
  int64_t batch, heads, kvHeads, headDim, valueDim, chunk, window;
  double cap = 0;
};

/// Reads sequences in calls of these lengths, sequence b only in every (b + 1)-th of the calls at
/// which it is not ahead, and compares what each call gives.
template <typename T>
void check(const Case &c, const std::vector<int64_t> &calls, unsigned threads) {
  const int64_t context = 90, longest = std::ranges::max(calls);
  int64_t reach = context;
  for (const int64_t size : {c.chunk, c.window})
    reach = size ? std::min(reach, size) : reach;
  const int64_t slots = std::min(context, reach + longest - 1);
  std::mt19937 generator(7);
  const Rows q = Rows::random<T>(c.batch, context, c.heads, c.headDim, generator);
  const Rows k = Rows::random<T>(c.batch, context, c.kvHeads, c.headDim, generator);
  const Rows v = Rows::random<T>(c.batch, context, c.kvHeads, c.valueDim, generator);
  std::vector<T> keys = rounded<T>(
      std::vector<double>(static_cast<size_t>(c.batch * c.kvHeads * slots * c.headDim), NAN));
  std::vector<T> values = rounded<T>(
      std::vector<double>(static_cast<size_t>(c.batch * c.kvHeads * slots * c.valueDim), NAN));
  std::vector<int64_t> read(static_cast<size_t>(c.batch), 0);
  ThreadPool pool(threads);
  int64_t number = 0;
  for (const int64_t length : calls) {
    const CachedAttentionShape shape{c.batch,    length, slots,   c.heads,  c.kvHeads, c.headDim,
                                     c.valueDim, 0.3,    c.chunk, c.window, c.cap};
    std::vector<float> position;
    for (int64_t b = 0; b < c.batch; ++b) {
      const int64_t at = read[static_cast<size_t>(b)];
      const bool takes = number % (b + 1) == 0 && at + length <= context;
      position.push_back(takes ? static_cast<float>(at) : -1.0F);
    }
    ++number;
    // The rows of the call, each with three unused elements behind it.
    constexpr int64_t gap = 3;
    const auto rowsOf = [&](const Rows &all) {
      std::vector<double> part;
      for (int64_t b = 0; b < c.batch; ++b)
        for (int64_t i = 0; i < length; ++i) {
          for (int64_t h = 0; h < all.heads; ++h)
            for (int64_t e = 0; e < all.width; ++e)
              part.push_back(
                  all.at(b, std::min(context - 1, read[static_cast<size_t>(b)] + i), h, e));
          part.insert(part.end(), gap, NAN);
        }
      return rounded<T>(part);
    };
    const auto view = [&](auto *data, const Rows &all) {
      const int64_t row = all.heads * all.width + gap;
      return AttentionTensor<std::remove_pointer_t<decltype(data)>>{data, length * row, row,
                                                                    all.width};
    };
    const std::vector<T> qs = rowsOf(q), ks = rowsOf(k), vs = rowsOf(v);
    const Rows outputs{length, c.heads, c.valueDim, {}};
    std::vector<T> o(static_cast<size_t>(c.batch * length * (c.heads * c.valueDim + gap)));
    CachedAttentionTensors<T> tensors{
        view(qs.data(), q),      view(ks.data(), k), view(vs.data(), v), position.data(),
        view(o.data(), outputs), keys.data(),        values.data()};
    WorkerScratch scratch;
    scratch.bytesPerWorker = (cachedAttentionScratchBytes(shape) + WorkerScratch::alignment - 1) /
                             WorkerScratch::alignment * WorkerScratch::alignment;
    auto *memory = static_cast<std::byte *>(
        std::aligned_alloc(WorkerScratch::alignment, scratch.bytesPerWorker * threads));
    std::memset(memory, 0xff, scratch.bytesPerWorker * threads); // NaN
    scratch.base = memory;
    cachedAttention(shape, tensors, pool, scratch);
    std::free(memory);

    const std::vector<double> found = widened(o);
    const double limit = std::is_same_v<T, float> ? 1e-5 : std::is_same_v<T, BF16> ? 1e-2 : 2e-3;
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t i = 0; i < length; ++i)
        for (int64_t h = 0; h < c.heads; ++h) {
          const bool takes = position[static_cast<size_t>(b)] >= 0;
          const int64_t own = read[static_cast<size_t>(b)] + i, kvHead = h / (c.heads / c.kvHeads);
          std::vector<double> sums(static_cast<size_t>(c.valueDim));
          double total = 0;
          for (int64_t t = 0; takes && t <= own; ++t) {
            if ((c.chunk && t / c.chunk != own / c.chunk) || (c.window && own - t >= c.window))
              continue;
            double score = 0;
            for (int64_t e = 0; e < c.headDim; ++e)
              score += q.at(b, own, h, e) * k.at(b, t, kvHead, e);
            score *= 0.3;
            if (c.cap > 0)
              score = c.cap * std::tanh(score / c.cap);
            const double p = std::exp(score);
            total += p;
            for (int64_t e = 0; e < c.valueDim; ++e)
              sums[static_cast<size_t>(e)] += p * v.at(b, t, kvHead, e);
          }
          for (int64_t e = 0; e < c.valueDim; ++e) {
            const double expected = takes ? sums[static_cast<size_t>(e)] / total : 0.0;
            const double given = found[static_cast<size_t>(
                (b * length + i) * (c.heads * c.valueDim + gap) + h * c.valueDim + e)];
            ASSERT_NEAR(given, expected, limit * std::max(1.0, std::abs(expected)))
                << "call " << number << ", sequence " << b << ", token " << i << ", head " << h
                << ", element " << e;
          }
        }
    for (int64_t b = 0; b < c.batch; ++b)
      if (position[static_cast<size_t>(b)] >= 0)
        read[static_cast<size_t>(b)] += length;
  }
}

const std::vector<int64_t> kCalls = {5, 1, 1, 17, 1, 20, 1, 1, 1, 5, 20, 1, 1, 1, 1, 1};

TEST(CachedAttention, AgreesWithWholeSequences) {
  for (const Case &c :
       {Case{1, 4, 2, 16, 16, 0, 0}, Case{3, 4, 4, 8, 24, 0, 0}, Case{2, 6, 1, 33, 7, 0, 0},
        Case{2, 4, 2, 64, 64, 0, 9}, Case{1, 2, 1, 20, 20, 0, 30}, Case{2, 2, 2, 16, 16, 12, 0},
        Case{1, 3, 1, 16, 16, 8, 5}, Case{1, 1, 1, 300, 5, 0, 0}, Case{1, 8, 1, 1, 1, 0, 1},
        Case{2, 4, 2, 16, 16, 0, 0, 0.5}, Case{1, 6, 2, 40, 24, 0, 9, 30.0}}) {
    check<float>(c, kCalls, 1);
    check<float>(c, kCalls, 2);
  }
}

TEST(CachedAttention, WorksOnNarrowNumbers) {
  for (const Case &c : {Case{2, 4, 2, 64, 64, 0, 0}, Case{1, 2, 1, 20, 20, 0, 11},
                        Case{1, 3, 3, 7, 5, 10, 0}, Case{1, 4, 2, 64, 64, 0, 9, 2.0}}) {
    check<BF16>(c, kCalls, 2);
    check<F16>(c, kCalls, 2);
  }
}

} // namespace
