// Strided copies against plain loops, and the embedding gradient against its definition.
#include "runtime/cpu/Copy.h"
#include "runtime/cpu/Embedding.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

using namespace hydra::runtime;

namespace {

/// Dense strides of the dimensions taken in `order`, each with `gap` elements behind.
std::vector<int64_t> stridesInOrder(const std::vector<int64_t> &sizes,
                                    const std::vector<size_t> &order, int64_t gap) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride = stride * sizes[order[i]] + gap;
  }
  return strides;
}

int64_t extent(const std::vector<int64_t> &sizes, const std::vector<int64_t> &strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d)
    last += (sizes[d] - 1) * strides[d];
  return last + 1;
}

template <typename T> void checkCopies(uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<int64_t> sizes(static_cast<size_t>(draw(0, 4)));
    for (int64_t &size : sizes)
      size = draw(0, 3) == 0 ? draw(30, 70) : draw(1, 7);
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const std::vector<int64_t> to = stridesInOrder(sizes, order, draw(0, 2));
    std::shuffle(order.begin(), order.end(), random);
    std::vector<int64_t> from = stridesInOrder(sizes, order, draw(0, 2));
    if (!from.empty() && draw(0, 3) == 0)
      from[0] = 0; // repeated
    std::vector<T> source(static_cast<size_t>(extent(sizes, from))),
        target(static_cast<size_t>(extent(sizes, to)), T(77));
    for (T &x : source)
      x = static_cast<T>(draw(0, 120));
    std::vector<T> expected = target;
    int64_t count = 1;
    for (const int64_t size : sizes)
      count *= size;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, toIndex = 0, fromIndex = 0;
      for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) {
        toIndex += rest % sizes[d] * to[d];
        fromIndex += rest % sizes[d] * from[d];
      }
      expected[static_cast<size_t>(toIndex)] = source[static_cast<size_t>(fromIndex)];
    }
    ThreadPool pool(2);
    StridedCopy(sizes, to, from, sizeof(T)).run(target.data(), source.data(), pool);
    EXPECT_EQ(target, expected) << "trial " << trial;
  }
}

} // namespace

TEST(Copy, AnyStridesAndElementSizes) {
  checkCopies<uint8_t>(1);
  checkCopies<uint16_t>(2);
  checkCopies<uint32_t>(3);
  checkCopies<uint64_t>(4);
}

TEST(Copy, LargeDenseAndTransposed) {
  ThreadPool pool(2);
  std::vector<uint32_t> source(300 * 1000), target(source.size());
  std::iota(source.begin(), source.end(), 0u);
  StridedCopy({300000}, {1}, {1}, 4).run(target.data(), source.data(), pool);
  EXPECT_EQ(target, source);
  StridedCopy({300, 1000}, {1, 300}, {1000, 1}, 4).run(target.data(), source.data(), pool);
  for (size_t i = 0; i < 300; ++i)
    for (size_t j = 0; j < 1000; ++j)
      ASSERT_EQ(target[j * 300 + i], source[i * 1000 + j]);
}

TEST(EmbeddingGradient, SumsRowsByTokenInOrder) {
  for (const int64_t width : {1, 16, 100, 384}) {
    const int64_t tokens = 500, rows = 37, stride = width + 3;
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<int32_t> ids(tokens);
    for (int32_t &id : ids)
      id = static_cast<int32_t>(random() % 30);
    std::vector<float> gradient(static_cast<size_t>(tokens * stride));
    for (float &x : gradient)
      x = normal(random);
    std::vector<float> expected(static_cast<size_t>(rows * width), 0.0f);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t e = 0; e < width; ++e)
        expected[size_t(ids[size_t(t)] * width + e)] += gradient[size_t(t * stride + e)];
    const std::vector<int64_t> wide(ids.begin(), ids.end());
    for (const unsigned threads : {1u, 2u, 5u}) {
      ThreadPool pool(threads);
      std::vector<float> table(expected.size(), 5.0f);
      embeddingGradient({tokens, rows, width, stride}, {ids.data(), false}, gradient.data(),
                        table.data(), pool);
      EXPECT_EQ(table, expected) << "bits are those of the sum in token order";
      std::fill(table.begin(), table.end(), 5.0f);
      embeddingGradient({tokens, rows, width, stride}, {wide.data(), true}, gradient.data(),
                        table.data(), pool);
      EXPECT_EQ(table, expected);
    }
  }
}

TEST(EmbeddingGradient, RefusesIdsOutsideTheTable) {
  ThreadPool pool(2);
  std::vector<int32_t> ids = {0, 1, 3};
  std::vector<float> gradient(3 * 4), table(3 * 4);
  EXPECT_THROW(
      embeddingGradient({3, 3, 4, 4}, {ids.data(), false}, gradient.data(), table.data(), pool),
      hydra::support::Error);
  ids[2] = -1;
  EXPECT_THROW(
      embeddingGradient({3, 3, 4, 4}, {ids.data(), false}, gradient.data(), table.data(), pool),
      hydra::support::Error);
}

TEST(Copy, DISABLED_Benchmark) {
  ThreadPool pool(2);
  const auto best = [](auto &&fn) {
    double seconds = 1e9;
    for (int i = 0; i < 100; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      fn();
      seconds = std::min(
          seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return seconds;
  };
  const int64_t n = 2048;
  std::vector<float> a(static_cast<size_t>(n * n)), b(a.size());
  const StridedCopy dense({n, n}, {n, 1}, {n, 1}, 4), transpose({n, n}, {1, n}, {n, 1}, 4),
      heads({4, 12, 1024, 64}, {786432, 65536, 64, 1}, {786432, 64, 768, 1}, 4);
  const auto show = [&](const char *name, const StridedCopy &copy, double bytes) {
    const double seconds = best([&] { copy.run(b.data(), a.data(), pool); });
    std::printf("%-32s %6.1f GB/s\n", name, bytes / seconds * 1e-9);
  };
  show("dense 16 MiB", dense, 8.0 * double(n * n));
  show("transposed 2048 x 2048", transpose, 8.0 * double(n * n));
  show("[B,S,H,hd] to [B,H,S,hd] 12 MiB", heads, 8.0 * 4 * 12 * 1024 * 64);
  for (const auto &[tokens, rows, width] :
       {std::array<int64_t, 3>{1024, 256, 384}, {4096, 10000, 768}, {2048, 50257, 768}}) {
    std::vector<int32_t> ids(static_cast<size_t>(tokens));
    for (int32_t &id : ids)
      id = static_cast<int32_t>(static_cast<int64_t>(rand()) % rows);
    std::vector<float> gradient(static_cast<size_t>(tokens * width), 1.0f),
        table(static_cast<size_t>(rows * width));
    const double seconds = best([&] {
      embeddingGradient({tokens, rows, width, width}, {ids.data(), false}, gradient.data(),
                        table.data(), pool);
    });
    std::printf("embedding_grad T %ld V %ld D %ld     %8.1f us %6.1f GB/s\n", tokens, rows, width,
                seconds * 1e6, 4.0 * double(3 * tokens * width + rows * width) / seconds * 1e-9);
  }
}
