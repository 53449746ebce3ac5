// Which bytes of the transient segment are live when, and what they are for.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hydra::report {

using CategoryBytes = std::array<uint64_t, static_cast<size_t>(planfile::Category::MAX) + 1>;

/// Bytes [begin, end) that hold one value while blocks [first, last] of the program run. Named
/// after the tensor through which the value came in.
struct LivePiece {
  uint64_t begin, end;
  uint32_t first, last;
  uint32_t tensor;
};

/// A program's use of the transient segment over time. Time is counted in blocks of the program's
/// own list: what a loop or switch touches counts as live from its beginning to its end.
struct LiveMemory {
  uint32_t blocks = 0; // at least 1
  std::vector<LivePiece> pieces;
  uint64_t peakBytes = 0;
  uint32_t peakBlock = 0;
  CategoryBytes atPeak{};
  std::vector<std::pair<uint32_t, uint64_t>> largestAtPeak; // tensor, bytes; largest first
};

LiveMemory liveMemory(const planfile::Plan &plan, const planfile::Program &program);

/// For each tensor the first step of the program that writes it, in loops and switches too; of views
/// that none writes, one that writes bytes of theirs. Null where none does.
std::vector<const planfile::Step *> makersOf(const planfile::Plan &plan,
                                             const planfile::Program &program);

/// The bytes of the persistent segment, by the largest tensor that covers them.
CategoryBytes persistentMemory(const planfile::Plan &plan);

/// A picture: addresses down, time across, one letter per category, '.' where nothing is live.
/// `bytes` is what the picture shows from offset 0.
std::vector<std::string> drawMemory(const planfile::Plan &plan, const LiveMemory &memory,
                                    uint64_t bytes, size_t rows, size_t columns);

/// The letter of a category in pictures.
char categoryLetter(planfile::Category category);

} // namespace hydra::report
