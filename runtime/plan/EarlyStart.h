// Which launches of a stream begin before the one in front has ended.
#pragma once

#include "runtime/plan/PlanFile.h"

namespace hydra::runtime {

/// Whether a kernel that waits itself (`Kernel.early`, and for no event) is launched before what is
/// in front of it in its stream, another kernel, has ended: it is a microsecond or two nearer to its
/// begin then. But its blocks wait on multiprocessors that other streams could use, so beside those
/// (not `alone`) the kernel in front has to be a brief one.
inline bool beginsEarly(const planfile::Step &before, bool alone) {
  constexpr double brief = 5; // microseconds
  return alone || before.cost()->microseconds() <= brief;
}

} // namespace hydra::runtime
