// Transforms of real rows through complex ones of half the length.
#include "runtime/cpu/Fft.h"

#include "runtime/support/Error.h"

#include <kissfft/kiss_fft.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

using Complex = kiss_fft_cpx;

namespace {

Complex operator+(Complex a, Complex b) { return {a.r + b.r, a.i + b.i}; }
Complex operator-(Complex a, Complex b) { return {a.r - b.r, a.i - b.i}; }
Complex operator*(Complex a, Complex b) { return {a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r}; }
Complex operator*(float a, Complex b) { return {a * b.r, a * b.i}; }
Complex conjugate(Complex a) { return {a.r, -a.i}; }
Complex timesI(Complex a) { return {-a.i, a.r}; }

/// exp(-2 pi i part / whole).
Complex turnOf(int64_t part, int64_t whole) {
  const double angle =
      -2.0 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(whole);
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

using LibraryPlan = std::unique_ptr<std::remove_pointer_t<kiss_fft_cfg>, void (*)(void *)>;

LibraryPlan planOf(int64_t count, bool inverse) {
  LibraryPlan plan(kiss_fft_alloc(static_cast<int>(count), inverse ? 1 : 0, nullptr, nullptr),
                   [](void *memory) { kiss_fft_free(memory); });
  if (!plan)
    support::fail("no memory for a transform of {} complex numbers", count);
  return plan;
}

/// Whether the library has a butterfly for every factor. Others take it time that grows with their
/// square, and memory whenever it runs.
bool hasButterflies(int64_t count) { return hasFactorsUpTo(kissfftFactor, count); }

/// Of so many complex numbers, without a factor. With k t = (k^2 + t^2 - (k - t)^2) / 2 it is a
/// convolution by a chirp, for which the transforms of a power of two will do (Bluestein 1970).
class ComplexTransform {
public:
  ComplexTransform(int64_t count, bool inverse) : count(count) {
    if (count == 1)
      return;
    if (hasButterflies(count))
      straight = planOf(count, inverse);
    else
      prepareChirp(inverse);
  }

  /// How many numbers `run` works on beside its arguments.
  int64_t scratch() const { return 2 * std::ssize(kernel); }

  /// `from`, `to` and `work` lie apart.
  void run(const Complex *from, Complex *to, Complex *work) const {
    if (count == 1)
      *to = *from;
    else if (straight)
      kiss_fft(straight.get(), from, to);
    else
      convolve(from, to, work);
  }

private:
  void prepareChirp(bool inverse) {
    const int64_t size = chirpLength(count);
    there = planOf(size, /*inverse=*/false);
    back = planOf(size, /*inverse=*/true);
    chirp.reserve(static_cast<size_t>(count));
    for (int64_t k = 0; k < count; ++k) {
      const Complex turn = turnOf(k * k % (2 * count), 2 * count);
      chirp.push_back(inverse ? conjugate(turn) : turn);
    }
    std::vector<Complex> around(static_cast<size_t>(size), Complex{0.0F, 0.0F});
    const float factor = 1.0F / static_cast<float>(size); // of transforms there and back
    for (size_t k = 0; k < chirp.size(); ++k)
      around[k] = around[(around.size() - k) % around.size()] = factor * conjugate(chirp[k]);
    kernel.resize(around.size());
    kiss_fft(there.get(), around.data(), kernel.data());
  }

  void convolve(const Complex *from, Complex *to, Complex *work) const {
    const size_t size = kernel.size();
    Complex *turned = work, *spectrum = work + size;
    for (size_t t = 0; t < chirp.size(); ++t)
      turned[t] = from[t] * chirp[t];
    std::fill(turned + chirp.size(), turned + size, Complex{0.0F, 0.0F});
    kiss_fft(there.get(), turned, spectrum);
    for (size_t k = 0; k < size; ++k)
      spectrum[k] = spectrum[k] * kernel[k];
    kiss_fft(back.get(), spectrum, turned);
    for (size_t k = 0; k < chirp.size(); ++k)
      to[k] = turned[k] * chirp[k];
  }

  int64_t count;
  LibraryPlan straight{nullptr, nullptr}, there{nullptr, nullptr}, back{nullptr, nullptr};
  std::vector<Complex> chirp;  ///< exp(-pi i k^2 / count), inverse: its conjugate
  std::vector<Complex> kernel; ///< the spectrum of its conjugate, both ways from 0
};

} // namespace

/// What is prepared for n / 2 complex numbers, and exp(-2 pi i k / n) for k up to n / 4.
class FftTables {
public:
  FftTables(int64_t length, bool inverse) : inner(length / 2, inverse) {
    turns.reserve(static_cast<size_t>(length / 4 + 1));
    for (int64_t k = 0; k <= length / 4; ++k)
      turns.push_back(turnOf(k, length));
  }

  const ComplexTransform inner;

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
  std::vector<Complex> turns;
};

namespace {

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
  const std::string refusal = transformRefusal(planfile::TargetKind::cpu, spec);
  if (!refusal.empty())
    support::fail("{}", refusal);
  tables = FftTables::of(spec.length, spec.inverse);
}

size_t Fft::scratchBytesPerWorker() const {
  return static_cast<size_t>(spec.length / 2 + tables->inner.scratch()) * sizeof(Complex);
}

void Fft::run(const float *from, float *to, ThreadPool &pool, const WorkerScratch &scratch) const {
  const int64_t half = spec.length / 2, spectrum = spec.length + 2;
  pool.parallelFor(spec.rows, [&](int64_t row, unsigned worker) {
    auto *between = reinterpret_cast<Complex *>(scratch.of(worker));
    Complex *work = between + half;
    const auto rowOf = [&](auto *tensor, bool isSpectrum) {
      return tensor + row * (isSpectrum ? spectrum : spec.length);
    };
    const auto *source = reinterpret_cast<const Complex *>(rowOf(from, spec.inverse));
    auto *target = reinterpret_cast<Complex *>(rowOf(to, !spec.inverse));
    if (spec.inverse) {
      joinPairs(*tables, half, source, between);
      tables->inner.run(between, target, work);
    } else {
      tables->inner.run(source, between, work);
      splitPairs(*tables, half, between, target);
    }
  });
}

} // namespace hydra::runtime
