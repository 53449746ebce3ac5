// What the blocks of a program read and write.
#pragma once

#include "runtime/plan/ByteRange.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <vector>

namespace hydra::runtime {

/// The loops around a block, outermost first.
using LoopNest = std::vector<const planfile::Loop *>;

/// Bytes that are touched somewhere inside a block, over all iterations of the loops around it.
struct ByteAccess {
  uint32_t tensor;
  planfile::SegmentKind segment;
  planfile::Access access;
  ByteRange bytes;

  bool writes() const { return access != planfile::Access::read; }
};

/// How the loops shift a tensor, loop by loop.
std::vector<ByteStep> shiftsOf(uint32_t tensor, const LoopNest &loops);

/// Appends what `block` and everything inside it touches, in program order. The block must have
/// been verified.
void collectAccesses(const planfile::Plan &plan, const planfile::Block &block,
                     const LoopNest &loops, std::vector<ByteAccess> &accesses);

} // namespace hydra::runtime
