// Transforms of real rows through complex ones of half the length.
#include "runtime/cpu/Fft.h"

#include "runtime/support/Error.h"

#include <kissfft/kiss_fft.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>
#include <vector>

namespace hydra::runtime {

using Complex = kiss_fft_cpx;

/// What the library prepares for n / 2 complex numbers, and exp(-2 pi i k / n) for k up to n / 4.
class FftTables {
public:
  FftTables(int64_t length, bool inverse)
      : inner(kiss_fft_alloc(static_cast<int>(length / 2), inverse ? 1 : 0, nullptr, nullptr),
              [](void *memory) { kiss_fft_free(memory); }) {
    if (!inner)
      support::fail("no memory for a transform of {} numbers", length);
    turns.reserve(static_cast<size_t>(length / 4 + 1));
    for (int64_t k = 0; k <= length / 4; ++k) {
      const double angle =
          -2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
      turns.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
    }
  }

  /// Of n / 2 numbers, which lie apart.
  void transform(const Complex *from, Complex *to) const { kiss_fft(inner.get(), from, to); }

  Complex turn(int64_t k) const { return turns[static_cast<size_t>(k)]; }

  static std::shared_ptr<const FftTables> of(int64_t length, bool inverse) {
    static std::mutex mutex;
    static std::map<std::pair<int64_t, bool>, std::weak_ptr<const FftTables>> known;
    const std::lock_guard lock(mutex);
    std::weak_ptr<const FftTables> &entry = known[{length, inverse}];
    std::shared_ptr<const FftTables> tables = entry.lock();
    if (!tables)
      entry = tables = std::make_shared<const FftTables>(length, inverse);
    return tables;
  }

private:
  std::unique_ptr<std::remove_pointer_t<kiss_fft_cfg>, void (*)(void *)> inner;
  std::vector<Complex> turns;
};

namespace {

Complex operator+(Complex a, Complex b) { return {a.r + b.r, a.i + b.i}; }
Complex operator-(Complex a, Complex b) { return {a.r - b.r, a.i - b.i}; }
Complex operator*(Complex a, Complex b) { return {a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r}; }
Complex operator*(float a, Complex b) { return {a * b.r, a * b.i}; }
Complex conjugate(Complex a) { return {a.r, -a.i}; }
Complex timesI(Complex a) { return {-a.i, a.r}; }

/// From the transform z of pairs (x[2j], x[2j + 1]) to that of x: with e = (z[k] + z*[h - k]) / 2
/// of the even numbers and o = -i (z[k] - z*[h - k]) / 2 of the odd ones, y[k] = e + w^k o and y[h
/// - k] = (e - w^k o)*.
void splitPairs(const FftTables &tables, int64_t half, const Complex *z, Complex *y) {
  y[0] = {z[0].r + z[0].i, 0.0F};
  y[half] = {z[0].r - z[0].i, 0.0F};
  for (int64_t k = 1; k <= half / 2; ++k) {
    const Complex a = z[k], b = conjugate(z[half - k]);
    const Complex even = 0.5F * (a + b), odd = tables.turn(k) * (-0.5F * timesI(a - b));
    y[half - k] = conjugate(even - odd);
    y[k] = even + odd;
  }
}

/// The other way round, twice as large: z[k] = e + i o with e = y[k] + y*[h - k] and
/// o = (y[k] - y*[h - k]) w^-k; z[h - k] = e* + i o*.
void joinPairs(const FftTables &tables, int64_t half, const Complex *y, Complex *z) {
  z[0] = {y[0].r + y[half].r, y[0].r - y[half].r};
  for (int64_t k = 1; k <= half / 2; ++k) {
    const Complex a = y[k], b = conjugate(y[half - k]);
    const Complex even = a + b, odd = (a - b) * conjugate(tables.turn(k));
    z[half - k] = conjugate(even) + timesI(conjugate(odd));
    z[k] = even + timesI(odd);
  }
}

} // namespace

Fft::Fft(const FftSpec &spec) : spec(spec) {
  // Of n / 2 complex numbers, the sum of two places of which the library counts as int.
  constexpr int64_t kMost = 2 * int64_t{std::numeric_limits<int>::max() / 2};
  if (spec.length > kMost)
    support::fail("a transform of rows of {} numbers; kissfft takes at most {}", spec.length,
                  kMost);
  tables = FftTables::of(spec.length, spec.inverse);
}

size_t Fft::scratchBytesPerWorker() const {
  return static_cast<size_t>(spec.length / 2) * sizeof(Complex);
}

void Fft::run(const float *from, float *to, ThreadPool &pool, const WorkerScratch &scratch) const {
  const int64_t half = spec.length / 2, spectrum = spec.length + 2;
  pool.parallelFor(spec.rows, [&](int64_t row, unsigned worker) {
    auto *between = reinterpret_cast<Complex *>(scratch.of(worker));
    const auto rowOf = [&](auto *tensor, bool isSpectrum) {
      return tensor + row * (isSpectrum ? spectrum : spec.length);
    };
    const auto *source = reinterpret_cast<const Complex *>(rowOf(from, spec.inverse));
    auto *target = reinterpret_cast<Complex *>(rowOf(to, !spec.inverse));
    if (spec.inverse) {
      joinPairs(*tables, half, source, between);
      tables->transform(between, target);
    } else {
      tables->transform(source, between);
      splitPairs(*tables, half, between, target);
    }
  });
}

} // namespace hydra::runtime
