// The machine that a module is compiled for, as passes see it.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

inline constexpr llvm::StringLiteral kTargetAttr = "hydra.target";

/// That of the module around an operation; a CPU where it has none.
TargetAttr targetOf(mlir::Operation *op);

// Features.
inline constexpr llvm::StringLiteral kWarpgroupMatmul = "wgmma"; ///< matmuls of four warps, with TMA

// Rates of a loop that is one kernel (hydra-fuse-loops): seconds of a launch in a graph and of a step
// inside the kernel; of one block, FLOP/s and bytes/s.
inline constexpr llvm::StringLiteral kGraphLaunchSeconds = "graph_launch_seconds",
                                     kLoopStepSeconds = "loop_step_seconds",
                                     kBlockFlops = "block_flops",
                                     kBlockBandwidth = "block_bandwidth";

} // namespace hydra
