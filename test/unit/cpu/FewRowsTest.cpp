// Few rows times a matrix against a plain evaluation in double, over sizes, formats and gaps; the
// bits against the number of threads and of rows, and where operands lie.
#include "runtime/cpu/FewRows.h"

#include "runtime/support/DType.h"
#include "runtime/support/Int4Groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

/// Numbers of a format, and the same as doubles.
struct Numbers {
  DType dtype;
  std::vector<double> values;
  std::vector<std::byte> bytes;

  Numbers(DType dtype, int64_t count, std::mt19937 &random) : dtype(dtype) {
    std::normal_distribution<double> normal;
    values.resize(static_cast<size_t>(count));
    for (double &x : values)
      x = normal(random);
    bytes.resize(values.size() * support::byteSize(dtype));
    support::fromDoubles(dtype, values, bytes);
    read();
  }
  /// Integers from -127 to 127.
  static Numbers int8(int64_t count, std::mt19937 &random) {
    Numbers numbers(DType::F32, count, random);
    numbers.dtype = DType::I8;
    for (double &x : numbers.values)
      x = static_cast<double>(random() % 255) - 127;
    numbers.bytes.resize(numbers.values.size());
    support::fromDoubles(DType::I8, numbers.values, numbers.bytes);
    return numbers;
  }
  void read() { support::toDoubles(dtype, bytes, values); }

  /// Puts the elements of a matrix where other strides have them, with NaN between; what it is
  /// then.
  MatmulOperand moved(int64_t rows, int64_t columns, const MatmulOperand &from, int64_t rowStride,
                      int64_t columnStride) {
    std::vector<double> others(
        static_cast<size_t>(std::max(rows * rowStride, columns * columnStride)), std::nan(""));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        others[static_cast<size_t>(i * rowStride + j * columnStride)] =
            values[static_cast<size_t>(i * from.rowStride + j * from.columnStride)];
    values = std::move(others);
    bytes.resize(values.size() * support::byteSize(dtype));
    support::fromDoubles(dtype, values, bytes);
    return {from.dtype, {}, rowStride, columnStride};
  }
};

struct Problem {
  MatmulSpec spec;
  Numbers a, w, bias, c;
  std::vector<float> scale;         ///< of columns, where w is of integers
  std::vector<uint16_t> groupScale; ///< of groups, where it is packed

  Problem(DType operands, DType results, int64_t m, int64_t n, int64_t k, int64_t gap, bool hasBias,
          std::mt19937 &random)
      : a(operands, m * (k + gap), random), w(operands, n * (k + gap), random),
        bias(results, n, random), c(results, m * (n + gap), random) {
    spec.m = m, spec.n = n, spec.k = k;
    spec.a = {operands, {}, k + gap, 1};
    spec.b = {operands, {}, 1, k + gap};
    spec.c = {results, {}, n + gap, 1};
    spec.hasBias = hasBias;
    spec.widen = true;
  }

  const void *scales() const {
    if (spec.packed)
      return groupScale.data();
    return spec.hasWeightScale ? scale.data() : nullptr;
  }

  /// c, by so many threads; the first `rows` rows alone.
  std::vector<double> run(unsigned threads, int64_t rows) {
    MatmulSpec part = spec;
    part.m = rows;
    EXPECT_TRUE(isFewRows(part));
    const FewRows kernel(part);
    ThreadPool pool(threads);
    std::vector<std::byte> scratch(kernel.scratchBytesPerWorker() * threads + 64);
    void *base = scratch.data();
    size_t room = scratch.size();
    std::align(64, kernel.scratchBytesPerWorker() * threads, base, room);
    kernel.run(a.bytes.data(), w.bytes.data(), spec.hasBias ? bias.bytes.data() : nullptr, scales(),
               c.bytes.data(), pool,
               {static_cast<std::byte *>(base), kernel.scratchBytesPerWorker()});
    c.read();
    return c.values;
  }
};

} // namespace

TEST(FewRows, AgreeWithDouble) {
  std::mt19937 random(3);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  const std::vector<std::pair<DType, DType>> formats = {{DType::F32, DType::F32},
                                                        {DType::BF16, DType::BF16},
                                                        {DType::BF16, DType::F32},
                                                        {DType::F16, DType::F16},
                                                        {DType::F16, DType::F32}};
  for (int round = 0; round < 300; ++round) {
    const auto [operands, results] = formats[static_cast<size_t>(below(5))];
    const int64_t m = 1 + below(16), n = 1 + below(round % 3 ? 40 : 900), k = 1 + below(300);
    Problem p(operands, results, m, n, k, below(2) * below(20), below(2) == 0, random);
    const std::vector<double> before = p.c.values, found = p.run(1, m);
    const double rounding = results == DType::F32 ? 1e-6 : results == DType::F16 ? 1e-3 : 8e-3;
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < p.spec.c.rowStride; ++j) {
        const auto at = static_cast<size_t>(i * p.spec.c.rowStride + j);
        if (j >= n) {
          ASSERT_EQ(found[at], before[at]) << "gap behind row " << i;
          continue;
        }
        double wanted = p.spec.hasBias ? p.bias.values[static_cast<size_t>(j)] : 0;
        for (int64_t e = 0; e < k; ++e)
          wanted += p.a.values[static_cast<size_t>(i * p.spec.a.rowStride + e)] *
                    p.w.values[static_cast<size_t>(j * p.spec.b.columnStride + e)];
        ASSERT_NEAR(found[at], wanted, rounding * std::abs(wanted) + 4e-6 * std::sqrt(double(k)));
      }
    ASSERT_EQ(p.run(3, m), found);
    const int64_t rows = 1 + below(m); // alone or beside others
    ASSERT_EQ(p.run(2, rows), found);
  }
}

/// A weight of integers, by rows of every format: sums are scaled before the bias is added.
TEST(FewRows, MultiplyIntegers) {
  std::mt19937 random(11);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  const std::vector<std::pair<DType, DType>> formats = {{DType::F32, DType::F32},
                                                        {DType::BF16, DType::BF16},
                                                        {DType::BF16, DType::F32},
                                                        {DType::F16, DType::F16},
                                                        {DType::F16, DType::F32}};
  for (int round = 0; round < 200; ++round) {
    const auto [operands, results] = formats[static_cast<size_t>(below(5))];
    const int64_t m = 1 + below(16), n = 1 + below(round % 3 ? 40 : 900), k = 1 + below(300),
                  gap = below(2) * below(20);
    Problem p(operands, results, m, n, k, gap, below(2) == 0, random);
    p.w = Numbers::int8(n * (k + gap), random);
    p.spec.b.dtype = DType::I8;
    p.spec.hasWeightScale = true;
    for (int64_t j = 0; j < n; ++j)
      p.scale.push_back(0.01F * static_cast<float>(1 + below(5)));
    const std::vector<double> found = p.run(1, m);
    const double rounding = results == DType::F32 ? 1e-6 : results == DType::F16 ? 1e-3 : 8e-3;
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double wanted = 0;
        for (int64_t e = 0; e < k; ++e)
          wanted += p.a.values[static_cast<size_t>(i * p.spec.a.rowStride + e)] *
                    p.w.values[static_cast<size_t>(j * p.spec.b.columnStride + e)];
        wanted *= p.scale[static_cast<size_t>(j)];
        if (p.spec.hasBias)
          wanted += p.bias.values[static_cast<size_t>(j)];
        ASSERT_NEAR(found[static_cast<size_t>(i * p.spec.c.rowStride + j)], wanted,
                    rounding * std::abs(wanted) + 3e-5 * std::sqrt(double(k)));
      }
    ASSERT_EQ(p.run(3, m), found);
    ASSERT_EQ(p.run(2, 1 + below(m)), found);
  }
}

/// A weight of two numbers in a byte has the bits of one in f32 that holds what they stand for:
/// their products with scales of bf16 are exact.
TEST(FewRows, MultiplyPackedIntegersAsTheirNumbers) {
  std::mt19937 random(13);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  const std::vector<std::pair<DType, DType>> formats = {{DType::F32, DType::F32},
                                                        {DType::BF16, DType::BF16},
                                                        {DType::BF16, DType::F32},
                                                        {DType::F16, DType::F16},
                                                        {DType::F16, DType::F32}};
  for (int round = 0; round < 200; ++round) {
    const auto [operands, results] = formats[static_cast<size_t>(below(5))];
    const int64_t m = 1 + below(16), n = 1 + below(round % 3 ? 40 : 900), groups = 1 + below(9),
                  k = groups * support::kInt4Group, gap = below(2) * support::kInt4Group;
    Problem p(operands, results, m, n, k, gap, below(2) == 0, random);
    Problem wide = p;
    wide.w = Numbers(DType::F32, n * (k + gap), random);
    p.w.bytes.assign(static_cast<size_t>(n * (k + gap) / 2), std::byte{0});
    for (int64_t j = 0; j < n; ++j)
      for (int64_t g = 0; g < groups; ++g) {
        const auto at = static_cast<size_t>(j * (k + gap) + g * support::kInt4Group);
        const uint16_t scale = support::bf16FromDouble(0.01 * static_cast<double>(1 + below(9)));
        p.groupScale.push_back(scale);
        for (size_t i = 0; i < support::kInt4Bytes; ++i) {
          const support::Int4Pair pair{static_cast<int>(below(16)) - 8,
                                       static_cast<int>(below(16)) - 8};
          p.w.bytes[at / 2 + i] = static_cast<std::byte>(support::packInt4(pair));
          wide.w.values[at + i] = pair.first * support::bf16ToFloat(scale);
          wide.w.values[at + i + support::kInt4Bytes] = pair.second * support::bf16ToFloat(scale);
        }
      }
    p.spec.b.dtype = DType::I8;
    p.spec.hasWeightScale = p.spec.packed = true;
    // Rows in f32 as well, which all formats are exactly.
    support::fromDoubles(DType::F32, wide.w.values, wide.w.bytes);
    wide.spec.b.dtype = DType::F32;
    const Numbers rows = p.a;
    wide.a = Numbers(DType::F32, m * (k + gap), random);
    wide.a.values = rows.values;
    support::fromDoubles(DType::F32, rows.values, wide.a.bytes);
    wide.spec.a.dtype = DType::F32;
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    const std::vector<double> found = p.run(1, m);
    if (results == DType::F32) {
      EXPECT_EQ(wide.run(1, m), found);
    }
    ASSERT_EQ(p.run(3, m), found);
    ASSERT_EQ(p.run(2, 1 + below(m)), found);
  }
}

/// hydra-assign-layouts may give an operand other strides, and may not move a bit by that.
TEST(FewRows, LayoutsDoNotMoveBits) {
  std::mt19937 random(5);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  const std::vector<std::pair<DType, DType>> formats = {{DType::F32, DType::F32},
                                                        {DType::BF16, DType::BF16},
                                                        {DType::BF16, DType::F32},
                                                        {DType::F16, DType::F16},
                                                        {DType::F16, DType::F32}};
  for (int round = 0; round < 200; ++round) {
    const auto [operands, results] = formats[static_cast<size_t>(below(5))];
    const int64_t m = 1 + below(16), n = 1 + below(round % 3 ? 40 : 900), k = 1 + below(300);
    const Problem plain(operands, results, m, n, k, 0, below(2) == 0, random);
    Problem reference = plain;
    const std::vector<double> expected = reference.run(1, m);
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    for (const bool otherA : {false, true})
      for (const bool otherB : {false, true})
        for (const int64_t gap : {0, 3}) {
          Problem other = plain;
          if (otherA)
            other.spec.a = other.a.moved(m, k, plain.spec.a, 1, m + gap);
          if (otherB)
            other.spec.b = other.w.moved(k, n, plain.spec.b, n + gap, 1);
          EXPECT_EQ(other.run(1 + static_cast<unsigned>(gap), m), expected)
              << (otherA ? "a by columns " : "") << (otherB ? "b by rows " : "") << "gap " << gap;
        }
  }
}

TEST(FewRows, AreOneMatrixHoweverItLies) {
  std::mt19937 random(1);
  const auto spec = [&] {
    return Problem(DType::F32, DType::F32, 16, 8, 8, 0, false, random).spec;
  };
  const auto with = [&](auto change) {
    MatmulSpec other = spec();
    change(other);
    return isFewRows(other);
  };
  EXPECT_TRUE(isFewRows(spec()));
  EXPECT_TRUE(with([](MatmulSpec &s) { std::swap(s.b.rowStride, s.b.columnStride); }));
  EXPECT_TRUE(with([](MatmulSpec &s) { std::swap(s.a.rowStride, s.a.columnStride); }));
  EXPECT_FALSE(with([](MatmulSpec &s) { s.m = 17; }));
  EXPECT_FALSE(
      with([](MatmulSpec &s) { s.m = 9, s.a.dtype = s.b.dtype = DType::BF16, s.widen = false; }));
  EXPECT_FALSE(with([](MatmulSpec &s) { s.accumulate = true; }));
  EXPECT_FALSE(with([](MatmulSpec &s) { s.tf32 = true; }));
  EXPECT_FALSE(with([](MatmulSpec &s) { s.batch = {2}; }));
}
