// What row-wise operations do to i32.
#pragma once

#include "dialects/hydra/RowEmitter.h"

#include <algorithm>
#include <cstdint>

namespace hydra::test {

/// `f` of two whole numbers that are i32.
inline double ofWords(RowBinary f, double a, double b) {
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  const auto u = static_cast<uint32_t>(x), v = static_cast<uint32_t>(y);
  auto word = [](uint32_t bits) { return static_cast<double>(static_cast<int32_t>(bits)); };
  switch (f) {
  case RowBinary::Add:
    return word(u + v);
  case RowBinary::Sub:
    return word(u - v);
  case RowBinary::Mul:
    return word(u * v);
  case RowBinary::Div:
    return static_cast<double>(x / y);
  case RowBinary::Max:
    return static_cast<double>(std::max(x, y));
  case RowBinary::Min:
    return static_cast<double>(std::min(x, y));
  case RowBinary::MulHigh:
    return word(static_cast<uint32_t>(uint64_t{u} * v >> 32));
  case RowBinary::Xor:
    return word(u ^ v);
  }
  return 0.0;
}

} // namespace hydra::test
