// The blocks of a program one after the other, those inside of loops and switches behind them.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hydra::report {

/// A step, loop or switch, and when it should run: microseconds since the program began. What is
/// inside of a loop has its part of the loop's time, all iterations together; of a switch that is
/// so for the case that takes longest, and the others take none.
struct PlanNode {
  const planfile::Block *block = nullptr;
  std::string place; ///< `12`; in a loop `12.0`; in case 1 of a switch `12.1.0`
  uint32_t top = 0;  ///< index in the program's own list
  uint32_t depth = 0;
  double times = 1; ///< how often it runs
  double begin = 0, end = 0;
};

std::vector<PlanNode> nodesOf(const planfile::Plan &plan, const planfile::Program &program);

} // namespace hydra::report
