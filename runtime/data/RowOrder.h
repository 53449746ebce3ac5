// The order in which a run reads rows: of one source or of several that are mixed.
#pragma once

#include "runtime/data/Rows.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hydra::data {

/// Element `index` of a permutation of [0, count) that seed and epoch choose. Needs no memory: a
/// Feistel network over the next power of four, iterated until it hits the range.
uint64_t shuffled(uint64_t index, uint64_t count, uint64_t seed, uint64_t epoch);

/// Passes over a source.
struct Epochs {
  std::string source;
  double passes = 0;
};

/// Row p of a run, for every p. A source alone is read in shuffled passes. Of several, each block
/// of 65,536 rows has so many of each as its weight says, rounded to whole ones, in an order that
/// the seed chooses, for all blocks the same; every source is read in shuffled passes of its own.
/// So row p depends on the sources, their weights, the seed and p alone.
class RowOrder {
public:
  struct Source {
    std::string name;
    double weight = 1; // above 0
    std::unique_ptr<RowSet> rows;
  };

  /// Throws Error for a weight that is no row of a block.
  RowOrder(std::vector<Source> sources, uint64_t seed);

  /// Row `place` of the run into row `row` of `batch`.
  void read(uint64_t place, size_t row, BatchRows &batch) const;

  /// Of each source, how often it was gone through in the first `rows` rows: of several, by their
  /// shares, which is right to a fraction of a block.
  std::vector<Epochs> epochs(uint64_t rows) const;
  /// Which part of the places of rows holds tokens of documents.
  double filled() const;
  /// What tells the weights from others, for checkpoints; empty for one source.
  std::string identity() const;

  static constexpr uint64_t kBlock = 65536;
  /// Of the order of several sources: another number where the same arguments give another order.
  static constexpr uint64_t kRevision = 1;

private:
  struct Slot {
    uint32_t source;
    uint32_t rank; // rows of the source before it in the block
  };

  std::vector<Source> sources;
  std::vector<uint64_t> before; // rows of a block that sources before a source have; and kBlock
  std::vector<Slot> block;      // by places; of several sources
  uint64_t seed;
};

/// How many rows of a block each weight stands for; they sum up to RowOrder::kBlock. Rounds by the
/// largest remainders. Throws Error where one is none, or is not finite and above 0.
std::vector<uint64_t> rowsOfBlock(const std::vector<double> &weights);

} // namespace hydra::data
