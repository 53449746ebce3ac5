// How evenly blocks share out attention, and in how many sections of heads.
#include "compiler/codegen/cuda/AttentionItems.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

namespace hydra::cuda {

static constexpr int64_t kTile = 64;

int64_t AttentionMask::firstKey(int64_t query) const {
  const int64_t first = chunk > 0 ? query / chunk * chunk : 0;
  return window > 0 ? std::max(first, query - window + 1) : first;
}

int64_t AttentionMask::endKey(int64_t query, int64_t keys) const {
  const int64_t end = chunk > 0 ? (query / chunk + 1) * chunk : keys;
  return std::min(causal ? std::min(end, query + 1) : end, keys);
}

int64_t AttentionMask::firstQuery(int64_t key) const {
  const int64_t first = chunk > 0 ? key / chunk * chunk : 0;
  return causal ? std::max(first, key) : first;
}

int64_t AttentionMask::endQuery(int64_t key, int64_t queries) const {
  const int64_t end = chunk > 0 ? (key / chunk + 1) * chunk : queries;
  return std::min(window > 0 ? std::min(end, key + window) : end, queries);
}

/// From `begin`, or the tile that has it, to `end`.
static int64_t tilesBetween(int64_t begin, int64_t end, int64_t tile) {
  return std::max<int64_t>(0, end - begin / tile * tile + tile - 1) / tile;
}

std::vector<int64_t> keyTilesOf(const AttentionMask &mask, int64_t queries, int64_t keys,
                                int64_t units, int64_t tile) {
  const int64_t tiles = llvm::divideCeil(queries, kTile), blocks = llvm::divideCeil(tiles, units);
  std::vector<int64_t> work;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t firstTile =
        block * units - (blocks * units - tiles); // the first is the incomplete one
    const int64_t first = std::max<int64_t>(firstTile, 0) * kTile,
                  last = std::min((firstTile + units) * kTile, queries) - 1;
    work.push_back(tilesBetween(mask.firstKey(first), mask.endKey(last, keys), tile));
  }
  return work;
}

std::vector<int64_t> queryTilesOf(const AttentionMask &mask, int64_t queries, int64_t keys,
                                  int64_t units) {
  std::vector<int64_t> work;
  for (int64_t first = 0; first < keys; first += units * kTile) {
    const int64_t last = std::min(first + units * kTile, keys) - 1;
    work.push_back(tilesBetween(mask.firstQuery(first), mask.endQuery(last, queries), kTile));
  }
  return work;
}

double unevenness(const AttentionItems &items, int64_t sections) {
  const int64_t each = items.work.size(), count = each * items.heads, chunks = each / items.ofChunk;
  std::vector<int64_t> sums(items.launched);
  for (int64_t item = 0; item < count; ++item) {
    const int64_t section = ((item / each + 1) * sections - 1) / items.heads,
                  first = section * items.heads / sections,
                  size = (section + 1) * items.heads / sections - first,
                  rank = (item - first * each) / size;
    const bool longFirst = (sections - 1 - section) % 2 == 0;
    int64_t block = longFirst == items.lastLongest ? each - 1 - rank : rank;
    block = block % chunks * items.ofChunk + block / chunks;
    const int64_t row = item / items.launched, at = item % items.launched;
    sums[row % 2 ? items.launched - 1 - at : at] += items.work[block] + 1; // own rows as well
  }
  const int64_t total = std::accumulate(sums.begin(), sums.end(), int64_t(0));
  return double(*llvm::max_element(sums)) * items.launched / total;
}

int64_t sectionsOf(const AttentionItems &items, int64_t headBytes) {
  constexpr int64_t kCached = 24000000; // bytes that stay beside what else runs
  constexpr double kEven = 1.05;
  const int64_t most = std::max<int64_t>(1, kCached / headBytes); // heads of a section
  int64_t best = llvm::divideCeil(items.heads, most);
  double least = unevenness(items, best);
  for (int64_t sections = best / 2; sections >= 1; sections /= 2)
    if (const double own = unevenness(items, sections); own * kEven < least) {
      best = sections;
      least = own;
    }
  return best;
}

} // namespace hydra::cuda
