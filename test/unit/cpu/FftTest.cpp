// Transforms of real rows against their definition in double: lengths of every kind of factor, and
// threads.
#include "runtime/cpu/Fft.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

using namespace hydra::runtime;

namespace {

std::vector<float> randomNumbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float &x : numbers)
    x = std::normal_distribution<float>()(random);
  return numbers;
}

std::vector<float> run(const FftSpec &spec, const std::vector<float> &from, unsigned threads) {
  const Fft transform(spec);
  ThreadPool pool(threads);
  WorkerScratch scratch;
  scratch.bytesPerWorker = (transform.scratchBytesPerWorker() + 63) / 64 * 64;
  std::vector<std::byte> memory(scratch.bytesPerWorker * threads + 63);
  scratch.base =
      reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  const int64_t width = spec.inverse ? spec.length : spec.length + 2;
  std::vector<float> to(static_cast<size_t>(spec.rows * width),
                        std::numeric_limits<float>::quiet_NaN());
  transform.run(from.data(), to.data(), pool, scratch);
  return to;
}

double angle(int64_t k, int64_t t, int64_t n) {
  return 2 * std::numbers::pi * static_cast<double>(k * t % n) / static_cast<double>(n);
}

/// Errors grow with the logarithm of the length; numbers of a result are about sqrt(n).
double tolerance(int64_t n) { return 2e-6 * std::sqrt(double(n)) * std::log2(double(2 * n)); }

const std::vector<int64_t> kLengths = {2,  4,  6,  8,   10,  14,   30,  36,
                                       62, 64, 98, 128, 194, 1000, 1024};

TEST(Fft, IsTheSpectrumOfEachRow) {
  for (const int64_t n : kLengths) {
    const FftSpec spec{3, n, false};
    const std::vector<float> x = randomNumbers(3 * n, uint32_t(n)), y = run(spec, x, 1);
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t k = 0; k <= n / 2; ++k) {
        double re = 0, im = 0;
        for (int64_t t = 0; t < n; ++t) {
          re += x[row * n + t] * std::cos(angle(k, t, n));
          im -= x[row * n + t] * std::sin(angle(k, t, n));
        }
        const float *found = &y[row * (n + 2) + 2 * k];
        ASSERT_NEAR(found[0], re, tolerance(n)) << n << " numbers, " << k;
        ASSERT_NEAR(found[1], im, tolerance(n)) << n << " numbers, " << k;
      }
    for (const int64_t end : {int64_t{1}, n + 1})
      EXPECT_EQ(y[end], 0.0F) << "an end of " << n << " numbers";
    EXPECT_EQ(run(spec, x, 3), y);
  }
}

TEST(Fft, BringsRowsBackTimesTheirLength) {
  std::vector<int64_t> lengths = kLengths;
  lengths.insert(lengths.end(), {int64_t{2} * 10007, int64_t{1} << 16, int64_t{2} * 100003});
  for (const int64_t n : lengths) {
    const std::vector<float> x = randomNumbers(4 * n, uint32_t(n)), y = run({4, n, false}, x, 2),
                             back = run({4, n, true}, y, 1);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(back[i] / float(n), x[i], 1e-5) << n << " numbers";
    EXPECT_EQ(run({4, n, true}, y, 2), back);
  }
}

TEST(Fft, CountsNumbersInsideOfASpectrumTwice) {
  const int64_t n = 12;
  for (int64_t k = 0; k <= n / 2; ++k)
    for (const int64_t part : {0, 1}) {
      std::vector<float> y(static_cast<size_t>(n + 2), 0.0F);
      if (part == 1 && (k == 0 || k == n / 2))
        continue; // always 0
      y[static_cast<size_t>(2 * k + part)] = 1.0F;
      const std::vector<float> x = run({1, n, true}, y, 1);
      const double times = k == 0 || k == n / 2 ? 1 : 2;
      for (int64_t t = 0; t < n; ++t)
        EXPECT_NEAR(x[size_t(t)],
                    times * (part == 0 ? std::cos(angle(k, t, n)) : -std::sin(angle(k, t, n))),
                    1e-6);
    }
}

TEST(Fft, RefusesRowsThatTheLibraryCannotCount) {
  for (const int bits : {31, 33})
    EXPECT_THROW(Fft({1, int64_t{1} << bits, false}), hydra::support::Error);
  const int64_t twiceAPrime = 2 * ((int64_t{1} << 28) + 3); // by a power of two
  EXPECT_THROW(Fft({1, twiceAPrime, false}), hydra::support::Error);
}

} // namespace
