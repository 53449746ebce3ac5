// Which memory a program must write before it reads it, and what to fill that with to see that it
// does.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// As every byte of a number: NaN of any floating type, -1 of a signed integer, which is no id.
inline constexpr unsigned char kPoison = 0xFF;

/// Bytes [first, second) of the transient segment, in rising order: all but those of the program's
/// inputs, which are written before it begins. Of an input with gaps between its rows, the gaps
/// count as written.
std::vector<std::pair<uint64_t, uint64_t>> unwrittenBytes(const planfile::Plan &plan,
                                                          const planfile::Program &program);

} // namespace hydra::runtime
