// Numbers as people read them.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace hydra::report {

/// `512 B`, `1.50 KiB`, `22.9 GiB`: three digits.
inline std::string bytesText(uint64_t bytes) {
  constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  if (unit == 0)
    return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, units[unit]);
}

/// `1,234,567`.
inline std::string countText(uint64_t count) {
  std::string text = fmt::format("{}", count);
  for (auto i = static_cast<ptrdiff_t>(text.size()) - 3; i > 0; i -= 3)
    text.insert(static_cast<size_t>(i), ",");
  return text;
}

} // namespace hydra::report
