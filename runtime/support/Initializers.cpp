// The initialisers: one uniform number per element, mapped through the inverse distribution.
#include "runtime/support/Initializers.h"

#include "runtime/support/Error.h"
#include "runtime/support/InverseNormal.h"
#include "runtime/support/Philox.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace hydra::support {

namespace {

/// Elements that are drawn together: what lies between two steps stays in the L1 cache.
constexpr size_t kBlock = 1024;

/// A standard normal truncated to |x| <= cut, from uniform numbers: u is mapped linearly into the
/// probabilities [tail, 1 - tail] that the interval spans. Always inverted in the lower half,
/// which keeps the two tails equally exact.
void truncatedNormals(std::span<double> numbers, double cut) {
  const double tail = 0.5 * std::erfc(cut / std::sqrt(2.0));
  std::array<double, kBlock> uniform;
  std::ranges::copy(numbers, uniform.begin());
  for (double &number : numbers)
    number = tail + std::min(number, 1.0 - number) * (1.0 - 2.0 * tail);
  inverseNormalCdf(numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double z = std::clamp(numbers[i], -cut, 0.0);
    numbers[i] = uniform[i] < 0.5 ? z : -z;
  }
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

void check(const Initializer &init, std::string_view name, uint64_t firstIndex, size_t count) {
  switch (init.kind) {
  case Initializer::Kind::Constant:
    return;
  case Initializer::Kind::Normal:
    return checkScale(name, "std", init.a);
  case Initializer::Kind::TruncNormal:
    checkScale(name, "std", init.a);
    if (!(init.b > 0.0))
      fail("initializer of '{}': cut is {}; expected a number > 0", shown(name), init.b);
    return;
  case Initializer::Kind::Uniform:
    return checkScale(name, "limit", init.a);
  case Initializer::Kind::Shuffle:
    if (const size_t n = init.table.size(); firstIndex > n || count > n - firstIndex)
      fail("initializer of '{}': the table to shuffle has {} values; expected one for each of "
           "the elements {} to {}",
           shown(name), n, firstIndex, firstIndex + count);
    return;
  }
}

/// At most kBlock numbers of a distribution, from uniform ones.
void distribute(const Initializer &init, std::span<double> numbers) {
  if (init.kind == Initializer::Kind::Uniform) {
    for (double &number : numbers)
      number = (2.0 * number - 1.0) * init.a;
    return;
  }
  if (init.kind == Initializer::Kind::Normal)
    inverseNormalCdf(numbers);
  else
    truncatedNormals(numbers, init.b);
  for (double &number : numbers)
    number = init.a * number;
}

template <typename T>
void fillAs(const Initializer &init, uint64_t seed, std::string_view name, std::span<T> out,
            uint64_t firstIndex) {
  check(init, name, firstIndex, out.size());
  if (init.kind == Initializer::Kind::Constant)
    return std::fill(out.begin(), out.end(), static_cast<T>(init.a));
  const Philox random(seed, name);
  if (init.kind == Initializer::Kind::Shuffle) {
    const std::vector<uint64_t> order = permutation(random, init.table.size());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(init.table[order[firstIndex + i]]);
    return;
  }
  std::array<double, kBlock> block;
  for (size_t i = 0; i < out.size(); i += kBlock) {
    const std::span<double> numbers = std::span(block).first(std::min(kBlock, out.size() - i));
    random.uniform53(firstIndex + i, numbers);
    distribute(init, numbers);
    std::ranges::transform(numbers, out.begin() + static_cast<ptrdiff_t>(i),
                           [](double number) { return static_cast<T>(number); });
  }
}

} // namespace

void fill(const Initializer &init, uint64_t seed, std::string_view name, std::span<double> out,
          uint64_t firstIndex) {
  fillAs(init, seed, name, out, firstIndex);
}

void fill(const Initializer &init, uint64_t seed, std::string_view name, std::span<float> out,
          uint64_t firstIndex) {
  fillAs(init, seed, name, out, firstIndex);
}

} // namespace hydra::support
