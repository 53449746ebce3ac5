// Algorithm AS 241, one by one and in vectors.
//
// Of random numbers 85% lie in the centre: two polynomials and a division, without a branch. The
// others need a logarithm, which is taken one by one: their places are collected first. 2 ns a
// number on a core with AVX-512, against 9 one by one.
#include "runtime/support/InverseNormal.h"

#include "runtime/support/CpuLevel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#pragma STDC FP_CONTRACT OFF

namespace hydra::support {

namespace {

using Coefficients = std::array<double, 8>; // ascending powers

[[gnu::always_inline]] inline double polynomial(const Coefficients &c, double x) {
  double value = c[7];
#pragma clang loop unroll(full)
  for (int i = 6; i >= 0; --i)
    value = value * x + c[i];
  return value;
}

// |p - 1/2| <= 0.425, in 0.425^2 - (p - 1/2)^2
constexpr Coefficients kCentreNumerator = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                           1.9715909503065514427e3, 1.3731693765509461125e4,
                                           4.5921953931549871457e4, 6.7265770927008700853e4,
                                           3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr Coefficients kCentreDenominator = {1.0,
                                             4.2313330701600911252e1,
                                             6.8718700749205790830e2,
                                             5.3941960214247511077e3,
                                             2.1213794301586595867e4,
                                             3.9307895800092710610e4,
                                             2.8729085735721942674e4,
                                             5.2264952788528545610e3};
// r = sqrt(-log(min(p, 1-p))) <= 5, in r - 1.6
constexpr Coefficients kMiddleNumerator = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                           5.76949722146069140550e0,  3.64784832476320460504e0,
                                           1.27045825245236838258e0,  2.41780725177450611770e-1,
                                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients kMiddleDenominator = {1.0,
                                             2.05319162663775882187e0,
                                             1.67638483018380384940e0,
                                             6.89767334985100004550e-1,
                                             1.48103976427480074590e-1,
                                             1.51986665636164571966e-2,
                                             5.47593808499534494600e-4,
                                             1.05075007164441684324e-9};
// r > 5, in r - 5
constexpr Coefficients kTailNumerator = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                         1.78482653991729133580e0,  2.96560571828504891230e-1,
                                         2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                         2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr Coefficients kTailDenominator = {1.0,
                                           5.99832206555887937690e-1,
                                           1.36929880922735805310e-1,
                                           1.48753612908506148525e-2,
                                           7.86869131145613259100e-4,
                                           1.84631831751005468180e-5,
                                           1.42151175831644588870e-7,
                                           2.04426310338993978564e-15};

constexpr double kCentre = 0.425, kMiddle = 5.0;

[[gnu::always_inline]] inline double centre(double q) {
  const double r = 0.180625 - q * q;
  return q * polynomial(kCentreNumerator, r) / polynomial(kCentreDenominator, r);
}

[[gnu::always_inline]] inline double middle(double r) {
  return polynomial(kMiddleNumerator, r - 1.6) / polynomial(kMiddleDenominator, r - 1.6);
}

double tail(double r) {
  return polynomial(kTailNumerator, r - 5.0) / polynomial(kTailDenominator, r - 5.0);
}

double radius(double p) { return std::sqrt(-std::log(p - 0.5 < 0.0 ? p : 1.0 - p)); }

constexpr size_t kBlock = 512; // four arrays in the L1 cache

/// At most kBlock numbers.
[[gnu::always_inline]] inline void invertBlock(double *numbers, size_t count) {
  std::array<uint32_t, kBlock> places;
  std::array<double, kBlock> given, radii, values;
  size_t outer = 0;
  for (size_t i = 0; i < count; ++i) {
    places[outer] = static_cast<uint32_t>(i);
    given[outer] = numbers[i];
    outer += std::abs(numbers[i] - 0.5) <= kCentre ? 0 : 1;
  }
  for (size_t i = 0; i < count; ++i)
    numbers[i] = centre(numbers[i] - 0.5);
  for (size_t i = 0; i < outer; ++i)
    radii[i] = radius(given[i]);
  for (size_t i = 0; i < outer; ++i)
    values[i] = middle(radii[i]);
  for (size_t i = 0; i < outer; ++i) {
    const double z = radii[i] <= kMiddle ? values[i] : tail(radii[i]);
    numbers[places[i]] = given[i] - 0.5 < 0.0 ? -z : z;
  }
}

} // namespace

double inverseNormalCdf(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= kCentre)
    return centre(q);
  const double r = radius(p);
  const double z = r <= kMiddle ? middle(r) : tail(r);
  return q < 0.0 ? -z : z;
}

void inverseNormalCdf(std::span<double> numbers) {
  for (size_t i = 0; i < numbers.size(); i += kBlock)
    forCpuLevel<invertBlock>(numbers.data() + i, std::min(kBlock, numbers.size() - i));
}

} // namespace hydra::support
