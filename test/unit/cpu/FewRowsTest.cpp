// Few rows times a matrix against a plain evaluation in double, over sizes, formats and gaps; the
// bits against the number of threads and of rows.
#include "runtime/cpu/FewRows.h"

#include "runtime/support/DType.h"

#include <gtest/gtest.h>

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
  void read() { support::toDoubles(dtype, bytes, values); }
};

struct Product {
  MatmulSpec spec;
  Numbers a, w, bias, c;

  Product(DType operands, DType results, int64_t m, int64_t n, int64_t k, int64_t gap, bool hasBias,
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

  /// c, by so many threads; the first `rows` rows alone.
  std::vector<double> run(unsigned threads, int64_t rows) {
    MatmulSpec part = spec;
    part.m = rows;
    EXPECT_TRUE(isFewRows(part));
    const FewRows product(part);
    ThreadPool pool(threads);
    std::vector<std::byte> scratch(product.scratchBytesPerWorker() * threads + 64);
    void *base = scratch.data();
    size_t room = scratch.size();
    std::align(64, product.scratchBytesPerWorker() * threads, base, room);
    product.run(a.bytes.data(), w.bytes.data(), spec.hasBias ? bias.bytes.data() : nullptr,
                c.bytes.data(), pool,
                {static_cast<std::byte *>(base), product.scratchBytesPerWorker()});
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
    Product p(operands, results, m, n, k, below(2) * below(20), below(2) == 0, random);
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

TEST(FewRows, AreOfOneMatrixWhoseRowsLieAlongTheSum) {
  std::mt19937 random(1);
  const auto spec = [&] {
    return Product(DType::F32, DType::F32, 16, 8, 8, 0, false, random).spec;
  };
  EXPECT_TRUE(isFewRows(spec()));
  const auto without = [&](auto change) {
    MatmulSpec other = spec();
    change(other);
    EXPECT_FALSE(isFewRows(other));
  };
  without([](MatmulSpec &s) { s.m = 17; });
  without([](MatmulSpec &s) { s.m = 9, s.a.dtype = s.b.dtype = DType::BF16, s.widen = false; });
  without([](MatmulSpec &s) { s.accumulate = true; });
  without([](MatmulSpec &s) { s.tf32 = true; });
  without([](MatmulSpec &s) { s.batch = {2}; });
  without([](MatmulSpec &s) { std::swap(s.b.rowStride, s.b.columnStride); });
  without([](MatmulSpec &s) { std::swap(s.a.rowStride, s.a.columnStride); });
}
