// The header of token files, as llm.c writes it: 256 integers, of which the first are magic number,
// version and number of tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hydra::data {

inline constexpr size_t kHeaderBytes = 1024;

struct HeaderKind {
  int32_t magic, version;
  size_t width; // bytes of a token
};

inline constexpr std::array<HeaderKind, 2> kHeaders = {{{20240520, 1, 2}, {20240801, 7, 4}}};

} // namespace hydra::data
