// The blocks of a program of a plan: what each touches, and when it runs.
#pragma once

#include "dialects/plan/Ordering.h"

#include <vector>

namespace hydra {

/// Bytes of one buffer that a block touches. A loop touches all of it: iterations move buffers.
struct BlockUse {
  int64_t block;
  support::ByteRange bytes;
  bool writes;

  bool overlaps(const BlockUse &other) const { return overlap(bytes, other.bytes); }
  /// Whether the order of the two matters.
  bool conflicts(const BlockUse &other) const {
    return overlaps(other) && (writes || other.writes);
  }
};

struct ProgramBlocks {
  explicit ProgramBlocks(plan::ProgramOp program);

  /// What a block takes instead of the device, if it moves bytes alone.
  std::optional<support::Link> linkOf(size_t block) const;
  /// Whether a block is an exchange between ranks.
  bool meetsRanks(size_t block) const { return linkOf(block) == support::Link::Ranks; }
  /// The last block before `block`, and the first behind it, that must keep their order with it; -1
  /// and the number of blocks where there is none.
  int64_t lastConflict(size_t block) const;
  int64_t firstConflict(size_t block) const;
  /// Whether two blocks must keep their order.
  bool conflict(size_t a, size_t b) const;

  std::vector<mlir::Operation *> operations;
  /// When each block begins and ends if one runs after the other, and exchanges take no time; in
  /// seconds. All take the same time, of 1, where the target has no rates.
  std::vector<double> begin, end;
  double time = 0; ///< of them all
  /// Of each block how much others can do beside it, in seconds of the whole device: its time, times
  /// the part of the device that it does not occupy. 0 where that is little.
  std::vector<double> idle;
  std::vector<llvm::SmallVector<std::pair<plan::BufferOp, BlockUse>, 8>> uses;
  llvm::DenseMap<mlir::Operation *, std::vector<BlockUse>> history; ///< by buffer
};

} // namespace hydra
