// Matmuls of rows in groups whose sizes are known when they run, by oneDNN.
#pragma once

#include "runtime/calls/GroupedCalls.h"
#include "runtime/cpu/Matmul.h"

#include <cstdint>
#include <vector>

namespace hydra::runtime {

/// Matmuls for 1, 2, 4, … rows up to a tile. The rows of a group are as many tiles as it has, and
/// one piece for each bit of the rest: so a few matmuls, made once, serve every size, and the order
/// of sums depends on the size of a group alone.
class RowPieces {
public:
  /// `matmulOf(rows)` describes one; pieces have at most `tile` rows, a power of two, and none more
  /// than `rows`.
  template <typename MatmulOf>
  RowPieces(int64_t rows, int64_t tile, unsigned threads, MatmulOf matmulOf) {
    for (int64_t size = 1; size <= tile && size <= rows; size *= 2)
      matmuls.emplace_back(matmulOf(size), threads);
  }

  size_t scratchBytesPerWorker() const;

  /// visit(matmul, first, rows) for all pieces of `rows` rows, the largest first.
  template <typename Visit> void forEach(int64_t rows, Visit visit) const {
    int64_t first = 0;
    for (size_t i = matmuls.size(); i-- > 0;)
      for (const int64_t size = int64_t{1} << i; rows - first >= size; first += size)
        visit(matmuls[i], first, size);
  }

private:
  std::vector<Matmul> matmuls; ///< of 2^i rows
};

/// y = x wT by groups.
class GroupedLinear {
public:
  GroupedLinear(const GroupedSpec &spec, unsigned threads);

  size_t scratchBytesPerWorker() const { return pieces.scratchBytesPerWorker(); }
  /// Allocates nothing. Throws Error for offsets that are no groups of rows.
  void run(const void *x, const void *w, const int32_t *offsets, void *y, ThreadPool &pool,
           const WorkerScratch &scratch);

private:
  struct Piece {
    const Matmul *matmul;
    int64_t group, row, firstTask;
  };

  GroupedSpec spec;
  RowPieces pieces;
  std::vector<Piece> list; ///< of one run
};

/// c[e] = aT b over the rows of group e.
class GroupedOuter {
public:
  GroupedOuter(const GroupedSpec &spec, unsigned threads);

  size_t scratchBytesPerWorker() const { return sumsAt + sumsBytes; }
  void run(const void *a, const void *b, const int32_t *offsets, void *c, ThreadPool &pool,
           const WorkerScratch &scratch);

private:
  /// Pieces that write their results, and those that add to it, of a band of rows of c.
  struct Band {
    RowPieces starts, adds;
  };
  Band makeBand(int64_t height, unsigned threads) const;
  void runBand(int64_t group, int64_t band, unsigned worker, const void *a, const void *b,
               const int32_t *offsets, void *c, const WorkerScratch &scratch) const;

  GroupedSpec spec;
  int64_t bands;
  Band whole, last;
  size_t sumsAt = 0, sumsBytes = 0; ///< in the scratch: where c is narrow, its band in f32
};

} // namespace hydra::runtime
