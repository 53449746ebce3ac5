// Divisions that round up.
#pragma once

#include <concepts>
#include <type_traits>

namespace hydra::support {

/// a / b, rounded up. a >= 0, b > 0.
template <std::integral T> constexpr T ceilDiv(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

/// The least multiple of `unit` from `x` on. x >= 0, unit > 0.
template <std::integral T> constexpr T roundUp(T x, std::type_identity_t<T> unit) {
  return ceilDiv(x, unit) * unit;
}

} // namespace hydra::support
