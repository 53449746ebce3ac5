// Matmuls of rows in groups against a plain evaluation in double: groups of all sizes, formats, and
// threads; and offsets that are no groups.
#include "runtime/cpu/GroupedMatmul.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

/// Numbers as a tensor holds them, and what they are.
struct Numbers {
  std::vector<std::byte> bytes;
  std::vector<double> values;

  Numbers(DType dtype, int64_t count, std::mt19937 &random)
      : bytes(static_cast<size_t>(count) * support::byteSize(dtype)),
        values(static_cast<size_t>(count)) {
    for (double &x : values)
      x = std::normal_distribution<>()(random);
    support::fromDoubles(dtype, values, bytes);
    support::toDoubles(dtype, bytes, values);
  }
};

/// What is left in memory that a call must write: no number.
Numbers unwritten(DType dtype, int64_t count, std::mt19937 &random) {
  Numbers numbers(dtype, count, random);
  std::fill(numbers.bytes.begin(), numbers.bytes.end(), std::byte{0xff});
  return numbers;
}

template <typename Kernel>
std::vector<double> run(const GroupedSpec &spec, const Numbers &a, const Numbers &b,
                        const std::vector<int32_t> &offsets, Numbers result, unsigned threads) {
  Kernel kernel(spec, threads);
  ThreadPool pool(threads);
  WorkerScratch scratch;
  scratch.bytesPerWorker = (kernel.scratchBytesPerWorker() + 63) / 64 * 64;
  std::vector<std::byte> memory(scratch.bytesPerWorker * threads + 63);
  scratch.base =
      reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  kernel.run(a.bytes.data(), b.bytes.data(), offsets.data(), result.bytes.data(), pool, scratch);
  support::toDoubles(spec.result, result.bytes, result.values);
  return result.values;
}

std::vector<int32_t> offsetsOf(const std::vector<int32_t> &counts) {
  std::vector<int32_t> offsets(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  return offsets;
}

double product(const GroupedSpec &spec, double a, double b) {
  return spec.tf32 ? double(support::tf32FromFloat(float(a))) * support::tf32FromFloat(float(b))
                   : a * b;
}

/// Sums of `terms` products of normal numbers, rounded to the result.
void expectNear(const GroupedSpec &spec, int64_t terms, const std::vector<double> &out,
                const std::vector<double> &expected) {
  const double rounding = spec.result == DType::F32   ? 1e-6
                          : spec.result == DType::F16 ? 1e-3
                                                      : 8e-3;
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_NEAR(out[i], expected[i],
                rounding * std::abs(expected[i]) + 2e-6 * std::sqrt(double(terms) + 1.0))
        << "element " << i;
}

void checkLinear(GroupedSpec spec, const std::vector<int32_t> &counts, uint32_t seed) {
  spec.groups = static_cast<int64_t>(counts.size());
  std::mt19937 random(seed);
  const Numbers x(spec.operands, spec.rows * spec.k, random),
      w(spec.operands, spec.groups * spec.n * spec.k, random);
  const std::vector<int32_t> offsets = offsetsOf(counts);
  std::vector<double> expected(static_cast<size_t>(spec.rows * spec.n));
  for (int64_t e = 0; e < spec.groups; ++e)
    for (int64_t r = offsets[e]; r < offsets[e + 1]; ++r)
      for (int64_t j = 0; j < spec.n; ++j)
        for (int64_t i = 0; i < spec.k; ++i) {
          const int64_t at = spec.transposed ? i * spec.n + j : j * spec.k + i;
          expected[r * spec.n + j] +=
              product(spec, x.values[r * spec.k + i], w.values[e * spec.n * spec.k + at]);
        }
  const Numbers y = unwritten(spec.result, spec.rows * spec.n, random);
  const auto out = run<GroupedLinear>(spec, x, w, offsets, y, 1);
  expectNear(spec, spec.k, out, expected);
  EXPECT_EQ(out, run<GroupedLinear>(spec, x, w, offsets, y, 3));
}

void checkOuter(GroupedSpec spec, const std::vector<int32_t> &counts, uint32_t seed) {
  spec.groups = static_cast<int64_t>(counts.size());
  std::mt19937 random(seed);
  const Numbers a(spec.operands, spec.rows * spec.n, random),
      b(spec.operands, spec.rows * spec.k, random);
  const std::vector<int32_t> offsets = offsetsOf(counts);
  std::vector<double> expected(static_cast<size_t>(spec.groups * spec.n * spec.k));
  for (int64_t e = 0; e < spec.groups; ++e)
    for (int64_t r = offsets[e]; r < offsets[e + 1]; ++r)
      for (int64_t j = 0; j < spec.n; ++j)
        for (int64_t i = 0; i < spec.k; ++i)
          expected[(e * spec.n + j) * spec.k + i] +=
              product(spec, a.values[r * spec.n + j], b.values[r * spec.k + i]);
  const Numbers c = unwritten(spec.result, spec.groups * spec.n * spec.k, random);
  const auto out = run<GroupedOuter>(spec, a, b, offsets, c, 1);
  expectNear(spec, spec.rows, out, expected);
  EXPECT_EQ(out, run<GroupedOuter>(spec, a, b, offsets, c, 3));
}

GroupedSpec specOf(int64_t rows, int64_t n, int64_t k) {
  GroupedSpec spec;
  spec.rows = rows;
  spec.n = n;
  spec.k = k;
  return spec;
}

/// Empty groups, all rows in one, tiles and every bit of the rest, rows without a group.
const std::vector<std::pair<int64_t, std::vector<int32_t>>> kGroups = {
    {1, {1}},        {1, {0}},           {4, {0, 4, 0}},    {7, {1, 2, 3}},
    {300, {0, 300}}, {300, {255, 0, 1}}, {640, {129, 511}}, {9, {0, 0, 0, 0}}};

TEST(GroupedLinear, MultipliesEachGroupByItsMatrix) {
  uint32_t seed = 1;
  for (const auto &[rows, counts] : kGroups)
    for (const bool transposed : {false, true})
      for (const auto &[n, k] : {std::pair<int64_t, int64_t>{5, 3}, {64, 48}, {1, 1}}) {
        GroupedSpec spec = specOf(rows, n, k);
        spec.transposed = transposed;
        checkLinear(spec, counts, seed++);
      }
}

TEST(GroupedOuter, SumsOverTheRowsOfEachGroup) {
  uint32_t seed = 100;
  for (const auto &[rows, counts] : kGroups)
    for (const auto &[n, k] : {std::pair<int64_t, int64_t>{5, 3}, {130, 24}, {1, 1}})
      checkOuter(specOf(rows, n, k), counts, seed++);
}

TEST(Grouped, TakeAllFormats) {
  for (const bool transposed : {false, true}) {
    GroupedSpec spec = specOf(140, 24, 40);
    spec.transposed = transposed;
    for (const DType dtype : {DType::BF16, DType::F16})
      for (const DType result : {dtype, DType::F32}) {
        spec.operands = dtype;
        spec.result = result;
        checkLinear(spec, {0, 131, 9}, 7);
        checkOuter(spec, {0, 131, 9}, 8);
      }
    spec.operands = spec.result = DType::F32;
    spec.tf32 = true;
    checkLinear(spec, {0, 131, 9}, 9);
    checkOuter(spec, {0, 131, 9}, 10);
  }
}

TEST(Grouped, RefuseOffsetsThatAreNoGroups) {
  std::mt19937 random(1);
  GroupedSpec spec = specOf(4, 2, 3);
  spec.groups = 2;
  const Numbers x(DType::F32, 12, random), w(DType::F32, 12, random), y(DType::F32, 12, random);
  const auto problem = [&](const std::vector<int32_t> &offsets, bool outer) -> std::string {
    try {
      outer ? run<GroupedOuter>(spec, y, x, offsets, w, 1)
            : run<GroupedLinear>(spec, x, w, offsets, y, 1);
    } catch (const support::Error &error) {
      return error.what();
    }
    return "";
  };
  for (const bool outer : {false, true}) {
    const std::string name = outer ? "grouped_outer: " : "grouped_linear: ";
    EXPECT_EQ(problem({0, 4, 4}, outer), "");
    EXPECT_EQ(problem({1, 4, 4}, outer), name + "group 0 has the rows 1 to 4 of 4");
    EXPECT_EQ(problem({0, 3, 2}, outer), name + "group 1 has the rows 3 to 2 of 4");
    EXPECT_EQ(problem({0, 3, 5}, outer), name + "group 1 has the rows 3 to 5 of 4");
    EXPECT_EQ(problem({0, -1, 4}, outer), name + "group 0 has the rows 0 to -1 of 4");
  }
}

} // namespace
