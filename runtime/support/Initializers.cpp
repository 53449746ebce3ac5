// The initialisers: one uniform number per element, mapped through the inverse distribution.
#include "runtime/support/Initializers.h"

#include "runtime/support/Error.h"
#include "runtime/support/Philox.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace hydra::support {

namespace {

using Coefficients = std::array<double, 8>; // ascending powers

double polynomial(const Coefficients &c, double x) {
  double value = c[7];
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

/// A standard normal truncated to |x| <= cut, from a uniform number: u is mapped linearly into the
/// probabilities [tail, 1 - tail] that the interval spans. Always inverted in the lower half,
/// which keeps the two tails equally exact.
double truncatedNormal(double u, double cut, double tail) {
  const double lower = std::min(u, 1.0 - u);
  const double z = std::clamp(inverseNormalCdf(tail + lower * (1.0 - 2.0 * tail)), -cut, 0.0);
  return u < 0.5 ? z : -z;
}

/// The random permutation of n elements: their indices, sorted by one random number each (equal
/// numbers by index).
std::vector<uint64_t> permutation(const Philox &random, size_t n) {
  std::vector<std::pair<uint64_t, uint64_t>> keyed(n);
  for (size_t i = 0; i < n; ++i)
    keyed[i] = {random.bits64(i), i};
  std::sort(keyed.begin(), keyed.end());
  std::vector<uint64_t> order(n);
  std::transform(keyed.begin(), keyed.end(), order.begin(), [](const auto &k) { return k.second; });
  return order;
}

void checkScale(std::string_view name, std::string_view what, double value) {
  if (!(value >= 0.0) || std::isinf(value))
    fail("initializer of '{}': {} is {}; expected a finite number >= 0", shown(name), what, value);
}

template <typename T>
void fillAs(const Initializer &init, uint64_t seed, std::string_view name, std::span<T> out,
            uint64_t firstIndex) {
  const Philox random(seed, name);
  auto each = [&](auto valueOf) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(valueOf(firstIndex + i));
  };
  switch (init.kind) {
  case Initializer::Kind::Constant:
    return each([&](uint64_t) { return init.a; });
  case Initializer::Kind::Normal:
    checkScale(name, "std", init.a);
    return each([&](uint64_t i) { return init.a * inverseNormalCdf(random.uniform53(i)); });
  case Initializer::Kind::TruncNormal: {
    checkScale(name, "std", init.a);
    if (!(init.b > 0.0))
      fail("initializer of '{}': cut is {}; expected a number > 0", shown(name), init.b);
    const double tail = 0.5 * std::erfc(init.b / std::sqrt(2.0));
    return each(
        [&](uint64_t i) { return init.a * truncatedNormal(random.uniform53(i), init.b, tail); });
  }
  case Initializer::Kind::Uniform:
    checkScale(name, "limit", init.a);
    return each([&](uint64_t i) { return (2.0 * random.uniform53(i) - 1.0) * init.a; });
  case Initializer::Kind::Shuffle: {
    const size_t n = init.table.size();
    if (firstIndex > n || out.size() > n - firstIndex) {
      fail("initializer of '{}': the table to shuffle has {} values; expected one for each of "
           "the elements {} to {}",
           shown(name), n, firstIndex, firstIndex + out.size());
    }
    const std::vector<uint64_t> order = permutation(random, n);
    return each([&](uint64_t i) { return init.table[order[i]]; });
  }
  }
}

} // namespace

double inverseNormalCdf(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentreNumerator, r) / polynomial(kCentreDenominator, r);
  }
  const double r = std::sqrt(-std::log(q < 0.0 ? p : 1.0 - p));
  const double z =
      r <= 5.0 ? polynomial(kMiddleNumerator, r - 1.6) / polynomial(kMiddleDenominator, r - 1.6)
               : polynomial(kTailNumerator, r - 5.0) / polynomial(kTailDenominator, r - 5.0);
  return q < 0.0 ? -z : z;
}

void fill(const Initializer &init, uint64_t seed, std::string_view name, std::span<double> out,
          uint64_t firstIndex) {
  fillAs(init, seed, name, out, firstIndex);
}

void fill(const Initializer &init, uint64_t seed, std::string_view name, std::span<float> out,
          uint64_t firstIndex) {
  fillAs(init, seed, name, out, firstIndex);
}

} // namespace hydra::support
