// Checks of discrete Fourier transforms.
#include "runtime/calls/FftCall.h"

#include "runtime/support/Safetensors.h"

#include <bit>
#include <limits>

using namespace hydra::runtime;
namespace support = hydra::support;
using support::DType;

namespace {

/// A row is a transform of half as many complex numbers (runtime/cpu/Fft.h). The library adds two
/// places as int.
std::string refusedByKissfft(int64_t length) {
  constexpr int64_t most = std::numeric_limits<int>::max() / 2;
  const int64_t half = length / 2;
  const bool straight = hasFactorsUpTo(kissfftFactor, half);
  if (half <= most && (straight || chirpLength(half) <= most))
    return {};
  return fmt::format("a transform of rows of {} numbers; kissfft takes at most {}{}", length,
                     straight ? 2 * most : int64_t{std::bit_floor(uint64_t{most})},
                     straight ? "" : " where half of them has a prime factor above 5");
}

/// NVIDIA, cuFFT API Reference, cufftMakePlanMany64: what exceeds 4G elements has no prime factor
/// above 127.
std::string refusedByCufft(int64_t length) {
  constexpr int64_t most = int64_t{1} << 32, factor = 127;
  if (length <= most || hasFactorsUpTo(factor, length))
    return {};
  return fmt::format("a transform of rows of {} numbers; cuFFT takes at most {} where they have a "
                     "prime factor above {}",
                     length, most, factor);
}

} // namespace

bool hydra::runtime::hasFactorsUpTo(int64_t most, int64_t number) {
  for (int64_t factor = 2; factor <= most && number > 1; ++factor)
    while (number % factor == 0)
      number /= factor;
  return number == 1;
}

int64_t hydra::runtime::chirpLength(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * count - 1)));
}

std::string hydra::runtime::transformRefusal(planfile::TargetKind target, const FftSpec &spec) {
  switch (target) {
  case planfile::TargetKind::cpu:
    return refusedByKissfft(spec.length);
  case planfile::TargetKind::cuda:
    return refusedByCufft(spec.length);
  }
  return {};
}

FftSpec hydra::runtime::describeFft(const CallSite &site) {
  site.argumentCount(2, 2);
  const bool inverse = site.as<planfile::Fft>().inverse();
  const TensorShape rows = site.tensor(inverse ? 1 : 0, "rows", -1, DType::F32),
                    spectra = site.tensor(inverse ? 0 : 1, "spectra", -1, DType::F32);
  if (rows.rank() < 1 || rows.sizes.back() < 2 || rows.sizes.back() % 2 != 0 || !rows.isDense())
    site.fail("rows have shape {}; expected a dense [..., n], n even",
              support::shapeText(rows.sizes));
  FftSpec spec;
  spec.length = rows.sizes.back();
  spec.rows = rows.elements() / spec.length;
  spec.inverse = inverse;
  std::vector<int64_t> expected = rows.sizes;
  expected.back() = spec.length / 2 + 1;
  expected.push_back(2);
  if (spectra.sizes != expected || !spectra.isDense())
    site.fail("spectra have shape {}; expected a dense {}", support::shapeText(spectra.sizes),
              support::shapeText(expected));
  if (const std::string refusal = transformRefusal(site.target(), spec); !refusal.empty())
    site.fail("is {}", refusal);
  return spec;
}
