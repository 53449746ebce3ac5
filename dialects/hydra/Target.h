// The machine that a module is compiled for, as passes see it.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/Roofline.h"

namespace hydra {

inline constexpr llvm::StringLiteral kTargetAttr = "hydra.target";

/// That of the module around an operation; a CPU where it has none.
TargetAttr targetOf(mlir::Operation *op);

/// The rates of a target; nullopt where its description gives none.
std::optional<Roofline> rooflineOf(TargetAttr target);

// Features.
inline constexpr llvm::StringLiteral kWarpgroupMatmul =
    "wgmma"; ///< matmuls of four warps, with TMA
inline constexpr llvm::StringLiteral kEarlyLaunch =
    "early_launch"; ///< kernels begin while those in front of them end, and wait for them
inline constexpr llvm::StringLiteral kRowScales =
    "row_scales"; ///< matmuls of 8-bit operands with a scale for each row
inline constexpr llvm::StringLiteral kBlockScales =
    "block_scales"; ///< and with a scale for each block of 128 elements, of 1 or 128 rows
inline constexpr llvm::StringLiteral kClusters =
    "clusters"; ///< blocks that read each other's shared memory

// Rates of the roofline, by the names that descriptions have; those of matmuls and attention are
// dictionaries by format.
inline constexpr llvm::StringLiteral kMemoryBandwidth = "memory_bandwidth",
                                     kCacheBytes = "cache_bytes",
                                     kCacheBandwidth = "cache_bandwidth",
                                     kMatmulFlops = "matmul_flops",
                                     kAttentionFlops = "attention_flops",
                                     kVectorFlops = "vector_flops",
                                     kLaunchSeconds = "launch_seconds",
                                     kHostBandwidth = "host_bandwidth",
                                     kHostSeconds = "host_seconds";

// Links between ranks, a dictionary of its own.
inline constexpr llvm::StringLiteral kLinks = "links", kNodeRanks = "node_ranks",
                                     kNodeBandwidth = "node_bandwidth",
                                     kNodeSeconds = "node_seconds",
                                     kNetworkBandwidth = "network_bandwidth",
                                     kNetworkSeconds = "network_seconds", kOverlap = "overlap",
                                     kOwnCopyBandwidth = "own_copy_bandwidth",
                                     kOwnCopyOddBandwidth = "own_copy_odd_bandwidth",
                                     kOwnCopyTail = "own_copy_tail",
                                     kEngineBandwidth = "engine_bandwidth",
                                     kEngineSeconds = "engine_seconds";

// Rates of a loop that is one kernel (hydra-fuse-loops): seconds of a launch in a graph and of a
// step inside the kernel; of one block, FLOP/s and bytes/s.
inline constexpr llvm::StringLiteral kGraphLaunchSeconds = "graph_launch_seconds",
                                     kLoopStepSeconds = "loop_step_seconds",
                                     kBlockFlops = "block_flops",
                                     kBlockBandwidth = "block_bandwidth";

} // namespace hydra
