// Matmuls against a plain evaluation in double, over orientations, batches and ragged sizes; the
// bits against the number of threads; and, by --gtest_also_run_disabled_tests, the speed.
#include "runtime/cpu/Matmul.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <random>
#include <vector>

using namespace hydra::runtime;
namespace support = hydra::support;
using hydra::support::DType;

namespace {

/// One matmul with its operands; a and b may be stored transposed, rows have gaps.
struct Problem {
  MatmulSpec spec;
  std::vector<float> a, b, bias, c;

  Problem(int64_t batch, int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB,
          int64_t gap, uint32_t seed) {
    spec.m = m;
    spec.n = n;
    spec.k = k;
    const auto layout = [&](std::vector<float> &values, MatmulOperand &operand, int64_t rows,
                            int64_t columns, bool transposed) {
      const int64_t pitch = (transposed ? rows : columns) + gap;
      const int64_t size = pitch * (transposed ? columns : rows);
      operand.rowStride = transposed ? 1 : pitch;
      operand.columnStride = transposed ? pitch : 1;
      if (batch > 1)
        operand.batchStrides = {size};
      values.resize(static_cast<size_t>(size * batch));
    };
    if (batch > 1)
      spec.batch = {batch};
    layout(a, spec.a, m, k, transposeA);
    layout(b, spec.b, k, n, transposeB);
    layout(c, spec.c, m, n, false);
    bias.resize(static_cast<size_t>(n));
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::vector<float> *values : {&a, &b, &bias, &c})
      for (float &x : *values)
        x = normal(random);
  }

  int64_t batch() const { return spec.batch.empty() ? 1 : spec.batch[0]; }
  static int64_t at(const MatmulOperand &operand, int64_t batch, int64_t row, int64_t column) {
    return (operand.batchStrides.empty() ? 0 : batch * operand.batchStrides[0]) +
           row * operand.rowStride + column * operand.columnStride;
  }

  std::vector<float> run(unsigned threads) const {
    const Matmul matmul(spec, threads);
    ThreadPool pool(threads);
    WorkerScratch scratch;
    scratch.bytesPerWorker = (matmul.scratchBytesPerWorker() + 63) / 64 * 64;
    std::vector<std::byte> memory(scratch.bytesPerWorker * threads + 63);
    scratch.base =
        reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    std::vector<float> out = c;
    matmul.run(a.data(), b.data(), spec.hasBias ? bias.data() : nullptr, out.data(), pool, scratch);
    return out;
  }

  /// Every element in double; sums of k products in float may be off by about sqrt(k) roundings.
  void check(const std::vector<float> &out) const {
    std::vector<float> expectedGaps = c, gaps = out;
    for (int64_t g = 0; g < batch(); ++g)
      for (int64_t i = 0; i < spec.m; ++i)
        for (int64_t j = 0; j < spec.n; ++j) {
          const auto index = static_cast<size_t>(at(spec.c, g, i, j));
          double exact = spec.accumulate ? c[index] : 0.0, size = std::fabs(exact);
          for (int64_t k = 0; k < spec.k; ++k) {
            const double product = double(a[static_cast<size_t>(at(spec.a, g, i, k))]) *
                                   double(b[static_cast<size_t>(at(spec.b, g, k, j))]);
            exact += product;
            size += std::fabs(product);
          }
          if (spec.hasBias)
            exact += bias[static_cast<size_t>(j)];
          ASSERT_NEAR(out[index], exact, 1e-6 * (size + 1)) << g << ", " << i << ", " << j;
          expectedGaps[index] = gaps[index] = 0;
        }
    EXPECT_EQ(gaps, expectedGaps) << "something beside the output was written";
  }
};

} // namespace

TEST(Matmul, AllOrientationsAndSizes) {
  uint32_t seed = 1;
  for (const auto &[m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                {5, 7, 3},
                                {64, 48, 33},
                                {200, 1, 77},
                                {1, 300, 50},
                                {129, 255, 65},
                                {333, 501, 97}})
    for (const bool transposeA : {false, true})
      for (const bool transposeB : {false, true})
        for (const int64_t gap : {0, 9}) {
          SCOPED_TRACE(testing::Message()
                       << m << " x " << n << " x " << k << (transposeA ? " T" : " N")
                       << (transposeB ? "T" : "N") << " gap " << gap);
          Problem problem(1, m, n, k, transposeA, transposeB, gap, seed++);
          problem.check(problem.run(2));
        }
}

TEST(Matmul, BatchBiasAndAccumulation) {
  for (const bool hasBias : {false, true})
    for (const bool accumulate : {false, true}) {
      Problem problem(6, 33, 40, 20, false, true, 4, 7);
      problem.spec.hasBias = hasBias;
      problem.spec.accumulate = accumulate;
      problem.check(problem.run(2));
    }
}

/// Scales of an operand of 8 bits, and which of them an element has.
struct Scales {
  MatmulScales scaling;
  BlockScales blocks;
  std::vector<float> values;

  /// Powers of two from 2^first on.
  Scales(MatmulScales scaling, bool ofManyRows, int64_t rows, int64_t k, int first)
      : scaling(scaling) {
    const int64_t along = support::scaleBlocks(k), down = support::scaleBlocks(rows);
    blocks = {ofManyRows, ofManyRows ? along + 3 : rows};
    const int64_t count = scaling == MatmulScales::Tensors ? 1
                          : scaling == MatmulScales::Rows  ? rows
                          : ofManyRows                     ? down * blocks.stride
                                                           : along * blocks.stride;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(std::ldexp(1.0f, first + static_cast<int>(i % 7)));
  }

  double of(int64_t row, int64_t k) const {
    const int64_t place = scaling == MatmulScales::Tensors ? 0
                          : scaling == MatmulScales::Rows  ? row
                          : blocks.ofManyRows              ? row / 128 * blocks.stride + k / 128
                                                           : k / 128 * blocks.stride + row;
    return values[static_cast<size_t>(place)];
  }
};

/// Of numbers of 8 bits: the sums of exact products, times the scales, which operands, rows or
/// blocks of 128 elements of a sum have.
TEST(Matmul, EightBitOperandsWithScales) {
  struct Case {
    DType results;
    MatmulScales scaling;
    bool manyRowsOfA = false, manyRowsOfB = false;
  };
  uint32_t seed = 11;
  for (const auto &[m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                {5, 7, 3},
                                {64, 48, 32},
                                {333, 129, 97},
                                {130, 260, 128},
                                {200, 131, 300}})
    for (const auto &[left, right] :
         {std::pair(DType::E4M3, DType::E4M3), {DType::E5M2, DType::E4M3}})
      for (const Case &one : {Case{DType::F32, MatmulScales::Tensors},
                              {DType::BF16, MatmulScales::Tensors},
                              {DType::F32, MatmulScales::Rows},
                              {DType::BF16, MatmulScales::Rows},
                              {DType::F32, MatmulScales::Blocks},
                              {DType::F32, MatmulScales::Blocks, true, false},
                              {DType::F32, MatmulScales::Blocks, false, true},
                              {DType::BF16, MatmulScales::Blocks, false, true}}) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " scaling "
                                        << int(one.scaling) << one.manyRowsOfA << one.manyRowsOfB);
        const Scales ofA(one.scaling, one.manyRowsOfA, m, k, -5),
            ofB(one.scaling, one.manyRowsOfB, n, k, 3);
        MatmulSpec spec;
        spec.m = m, spec.n = n, spec.k = k;
        spec.scaling = one.scaling;
        spec.a = {left, {}, k, 1, ofA.blocks};
        spec.b = {right, {}, 1, k, ofB.blocks};
        spec.c = {one.results, {}, n, 1};
        std::mt19937 random(seed++);
        std::normal_distribution<double> normal(0.0, 20.0);
        const auto draw = [&](DType dtype, int64_t count) {
          std::vector<double> values(static_cast<size_t>(count));
          for (double &v : values)
            v = support::rounded(dtype, normal(random));
          return values;
        };
        const auto bytesOf = [](DType dtype, const std::vector<double> &values) {
          std::vector<std::byte> bytes(values.size() * support::byteSize(dtype));
          support::fromDoubles(dtype, values, bytes);
          return bytes;
        };
        const std::vector<double> a = draw(left, m * k), b = draw(right, n * k);
        Matmul matmul(spec, 2);
        matmul.setScales(ofA.values.data(), ofB.values.data());
        ThreadPool pool(2);
        WorkerScratch scratch;
        scratch.bytesPerWorker = (matmul.scratchBytesPerWorker() + 63) / 64 * 64;
        std::vector<std::byte> memory(scratch.bytesPerWorker * 2 + 63);
        scratch.base = reinterpret_cast<std::byte *>(
            (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
        std::vector<std::byte> out(static_cast<size_t>(m * n) * support::byteSize(one.results));
        matmul.run(bytesOf(left, a).data(), bytesOf(right, b).data(), nullptr, out.data(), pool,
                   scratch);
        std::vector<double> c(static_cast<size_t>(m * n));
        support::toDoubles(one.results, out, c);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0.0, size = 0.0;
            for (int64_t l = 0; l < k; ++l) {
              const double product = a[static_cast<size_t>(i * k + l)] * ofA.of(i, l) *
                                     b[static_cast<size_t>(j * k + l)] * ofB.of(j, l);
              sum += product;
              size += std::fabs(product);
            }
            ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum,
                        1e-6 * size + support::roundingUnit(one.results) * std::fabs(sum))
                << i << ", " << j;
          }
      }
}

TEST(Matmul, SharedOperandAndSeveralBatchDimensions) {
  // c[g][h] = a[h] @ b: strides 0 for what is shared.
  Problem problem(6, 30, 20, 10, false, false, 0, 8);
  problem.spec.batch = {2, 3};
  problem.spec.a.batchStrides = {0, 300};
  problem.spec.b.batchStrides = {0, 0};
  problem.spec.c.batchStrides = {1800, 600};
  const std::vector<float> out = problem.run(2);
  for (int64_t g = 0; g < 2; ++g)
    for (int64_t h = 0; h < 3; ++h)
      for (int64_t i = 0; i < 30; ++i)
        for (int64_t j = 0; j < 20; ++j) {
          double exact = 0;
          for (int64_t k = 0; k < 10; ++k)
            exact += double(problem.a[size_t(h * 300 + i * 10 + k)]) *
                     double(problem.b[size_t(k * 20 + j)]);
          ASSERT_NEAR(out[size_t(g * 1800 + h * 600 + i * 20 + j)], exact, 1e-4);
        }
}

TEST(Matmul, TransposedOutput) {
  Problem problem(1, 50, 70, 30, false, true, 0, 9);
  const std::vector<float> plain = problem.run(1);
  problem.spec.c.rowStride = 1;
  problem.spec.c.columnStride = 50;
  const std::vector<float> transposed = problem.run(1);
  for (size_t i = 0; i < 50; ++i)
    for (size_t j = 0; j < 70; ++j)
      ASSERT_NEAR(plain[i * 70 + j], transposed[j * 50 + i], 1e-4);
}

TEST(Matmul, HalfPrecisionInputs) {
  using namespace hydra::support;
  for (const DType dtype : {DType::BF16, DType::F16})
    for (const bool widen : {!hasBf16Matmuls(), true})
      for (const int transposed : {0, 1, 2, 3}) {
        const bool transposeA = transposed & 1, transposeB = transposed & 2;
        Problem problem(1, 100, 60, 50, transposeA, transposeB, 0, 10);
        const auto toHalf = [&](std::vector<float> &values) {
          std::vector<uint16_t> half;
          for (float &x : values) {
            half.push_back(dtype == DType::F16 ? f16FromDouble(x) : bf16FromDouble(x));
            x = static_cast<float>(rounded(dtype, x));
          }
          return half;
        };
        const std::vector<uint16_t> a = toHalf(problem.a), b = toHalf(problem.b);
        problem.spec.a.dtype = problem.spec.b.dtype = dtype;
        problem.spec.widen = widen;
        const Matmul matmul(problem.spec, 1);
        ThreadPool pool(1);
        std::vector<std::byte> memory(matmul.scratchBytesPerWorker() + 64);
        const WorkerScratch scratch{
            reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 *
                                          64),
            matmul.scratchBytesPerWorker()};
        std::vector<float> out = problem.c;
        matmul.run(a.data(), b.data(), nullptr, out.data(), pool, scratch);
        problem.check(out);
      }
}

TEST(Matmul, TF32RoundsItsOperands) {
  for (const int transposed : {0, 1, 2, 3}) {
    Problem rounding(1, 100, 60, 50, transposed & 1, transposed & 2, 0, 11);
    rounding.spec.tf32 = true;
    const std::vector<float> out = rounding.run(1);
    for (std::vector<float> *values : {&rounding.a, &rounding.b})
      for (float &x : *values)
        x = hydra::support::tf32FromFloat(x);
    rounding.check(out);
    EXPECT_EQ(rounding.run(1), out); // rounded operands stay as they are
  }
}

TEST(Matmul, NumberOfThreadsDoesNotChangeTheBits) {
  for (const bool transposeA : {false, true})
    for (const bool transposeB : {false, true}) {
      const Problem problem(1, 515, 390, 203, transposeA, transposeB, 3, 11);
      const std::vector<float> one = problem.run(1);
      for (const unsigned threads : {2u, 3u, 8u})
        EXPECT_EQ(one, problem.run(threads));
    }
}

TEST(Matmul, StartsNoThreadsOfItsOwn) {
  const auto threadsNow = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const Problem problem(1, 515, 390, 203, false, true, 0, 14);
  problem.run(2);
  const auto before = threadsNow();
  const Matmul matmul(problem.spec, 2);
  ThreadPool pool(2);
  std::vector<std::byte> memory(2 * matmul.scratchBytesPerWorker() + 64);
  std::vector<float> out = problem.c;
  matmul.run(problem.a.data(), problem.b.data(), nullptr, out.data(), pool,
             {memory.data(), matmul.scratchBytesPerWorker() / 64 * 64});
  EXPECT_EQ(threadsNow(), before + 1) << "the pool's second thread, none of OpenMP";
}

TEST(Matmul, RefusesWhatOneDnnHasNoFastWayFor) {
  Problem problem(1, 20, 20, 20, false, false, 0, 12);
  problem.spec.a.columnStride = 2;
  problem.spec.a.rowStride = 40;
  EXPECT_THROW(Matmul(problem.spec, 1), hydra::support::Error);
  problem.spec.a = problem.spec.b;
  problem.spec.a.dtype = DType::I32;
  EXPECT_THROW(Matmul(problem.spec, 1), hydra::support::Error);
}

TEST(Matmul, DISABLED_Benchmark) {
  std::printf("oneDNN in blocks, f32, best of 20: GFLOP/s\n%-34s %18s %8s %8s\n", "", "m x n x k",
              "1 thread", "2");
  const auto rate = [](const char *name, int64_t m, int64_t n, int64_t k, bool transposeA,
                       bool transposeB) {
    const Problem problem(1, m, n, k, transposeA, transposeB, 0, 13);
    std::printf("%-34s %5ld x %5ld x %4ld", name, m, n, k);
    for (const unsigned threads : {1u, 2u}) {
      const Matmul matmul(problem.spec, threads);
      ThreadPool pool(threads);
      WorkerScratch scratch;
      scratch.bytesPerWorker = (matmul.scratchBytesPerWorker() + 63) / 64 * 64;
      std::vector<std::byte> memory(scratch.bytesPerWorker * threads + 63);
      scratch.base = reinterpret_cast<std::byte *>(
          (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
      std::vector<float> out = problem.c;
      double seconds = 1e9;
      for (int i = 0; i < 20; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        matmul.run(problem.a.data(), problem.b.data(), nullptr, out.data(), pool, scratch);
        seconds = std::min(
            seconds,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      std::printf(" %8.1f", 2e-9 * double(m * n * k) / seconds);
    }
    std::printf("\n");
  };
  rate("forward  x[T,K] w[N,K]^T", 1024, 1536, 384, false, true);
  rate("dgrad    g[T,N] w[N,K]", 1024, 384, 1536, false, false);
  rate("wgrad    g[T,N]^T x[T,K]", 1536, 384, 1024, true, false);
  rate("forward  x[T,K] w[N,K]^T", 1024, 384, 1536, false, true);
  rate("dgrad    g[T,N] w[N,K]", 1024, 1536, 384, false, false);
  rate("wgrad    g[T,N]^T x[T,K]", 384, 1536, 1024, true, false);
  rate("forward  x[T,K] w[N,K]^T", 1024, 384, 384, false, true);
  rate("wgrad    g[T,N]^T x[T,K]", 384, 384, 1024, true, false);
  rate("head     x[T,K] w[V,K]^T", 1024, 256, 384, false, true);
  rate("ragged   x[T,K] w[N,K]^T", 1023, 1535, 383, false, true);
  rate("both transposed", 1024, 1024, 1024, true, true);
}

/// hydra-assign-layouts may give an operand other strides, and may not move a bit by that.
TEST(Matmul, LayoutsDoNotMoveBits) {
  const std::vector<int64_t> sizes = {1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 100};
  std::mt19937 random(3);
  const auto pick = [&] { return sizes[random() % sizes.size()]; };
  for (int i = 0; i < 600; ++i) {
    const int64_t m = pick(), n = pick(), k = pick();
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    const Problem plain(1, m, n, k, false, false, 0, 10);
    const std::vector<float> expected = plain.run(1);
    for (const bool transposeA : {false, true})
      for (const bool transposeB : {false, true})
        for (const int64_t gap : {0, 3}) {
          Problem other(1, m, n, k, transposeA, transposeB, gap, 10);
          for (int64_t r = 0; r < std::max(m, k); ++r)
            for (int64_t c = 0; c < std::max(n, k); ++c) {
              if (r < m && c < k)
                other.a[size_t(Problem::at(other.spec.a, 0, r, c))] = plain.a[size_t(r * k + c)];
              if (r < k && c < n)
                other.b[size_t(Problem::at(other.spec.b, 0, r, c))] = plain.b[size_t(r * n + c)];
            }
          const std::vector<float> found = other.run(1);
          int64_t off = 0;
          for (int64_t r = 0; r < m; ++r)
            for (int64_t c = 0; c < n; ++c)
              off +=
                  found[size_t(Problem::at(other.spec.c, 0, r, c))] != expected[size_t(r * n + c)];
          EXPECT_EQ(off, 0) << (transposeA ? "T" : "N") << (transposeB ? "T" : "N") << " gap "
                            << gap;
        }
  }
}
