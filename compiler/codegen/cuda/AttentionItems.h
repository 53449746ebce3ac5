// In which order blocks of attention's kernels for warpgroups take what there is to do.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace hydra::cuda {

/// Which keys queries see: `Mask` of templates/attention.cuh.
struct AttentionMask {
  bool causal;
  int64_t chunk, window; ///< 0: none

  int64_t firstKey(int64_t query) const;
  int64_t endKey(int64_t query, int64_t keys) const;
  int64_t firstQuery(int64_t key) const;
  int64_t endQuery(int64_t key, int64_t queries) const;
};

/// Tiles of `tile` keys that each block of `units` x 64 queries reads, in the order of the blocks,
/// as `QueryBlock` of templates/attention_hopper.cuh has them.
std::vector<int64_t> keyTilesOf(const AttentionMask &mask, int64_t queries, int64_t keys,
                                int64_t units, int64_t tile);
/// Tiles of 64 queries that each block of `units` x 64 keys reads for one head of queries.
std::vector<int64_t> queryTilesOf(const AttentionMask &mask, int64_t queries, int64_t keys,
                                  int64_t units);

/// What the blocks of a launch share out, as `Items` of that template has it: for each head as many
/// items as `work` has numbers.
struct AttentionItems {
  llvm::ArrayRef<int64_t> work; ///< of each item of a head
  int64_t heads = 1;            ///< of all sequences
  int64_t launched = 1;         ///< blocks
  bool lastLongest = true;      ///< in a head, or a chunk of it; else its first items
  int64_t ofChunk = 1;          ///< items of a head's chunk; of no chunks all
};

/// The most work of one block, over the mean of all, where heads are taken in so many sections.
double unevenness(const AttentionItems &items, int64_t sections);

/// In how many sections heads are best taken: as many as leave what a section reads in the cache,
/// where every head reads `headBytes`; fewer where blocks then get more evenly to do.
int64_t sectionsOf(const AttentionItems &items, int64_t headBytes);

} // namespace hydra::cuda
