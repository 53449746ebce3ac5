// A deterministic source of random choices: the same draws from the same seed on every platform.
#pragma once

#include "test/support/GoldenFill.h"

#include <cmath>
#include <vector>

namespace hydra::test {

class Random {
public:
  explicit Random(uint64_t seed) : seed(seed) {}

  uint64_t next() { return mix(seed, count++); }
  /// In [0, n).
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  /// In [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }
  /// In [-1, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1.0; }
  /// Standard normal, by Box and Muller.
  double normal() {
    const double radius = 0.5 * (uniform() + 1.0), angle = 3.14159265358979323846 * uniform();
    return std::sqrt(-2.0 * std::log(1.0 - radius)) * std::cos(angle);
  }
  template <typename T> const T &pick(const std::vector<T> &values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }

private:
  uint64_t seed, count = 0;
};

} // namespace hydra::test
