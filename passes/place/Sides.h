// What of a training program the main stream does not wait for.
#pragma once

#include "passes/place/ProgramBlocks.h"

namespace hydra {

enum class Side {
  Main,
  Updates,   ///< changes parameters and what belongs to them, or only leads to what does
  Variables, ///< made of parameters alone
  Links,     ///< moves bytes between ranks, or between the device and the host
};

/// The side of each block. At last everything in a backward pass leads to updates: what leads to
/// them by others counts as theirs from the end of the program back, as long as the main stream
/// has as much to do behind it as they have. A program without updates has the sides `Main` and
/// `Links` alone.
std::vector<Side> sidesOf(plan::ProgramOp program, const ProgramBlocks &table);

} // namespace hydra
