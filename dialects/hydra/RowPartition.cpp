// How the rows of a group are cut into grains.
#include "dialects/hydra/RowPartition.h"

using namespace mlir;

namespace hydra {

using support::ceilDiv;

static constexpr int64_t kGrainBytes = 128 * 1024;
static constexpr int64_t kLeastGrains = 16;
static constexpr int64_t kMostSummedGrains = 64;

// On GPUs. A block sums a grain: as many for each multiprocessor as have 30 KiB on the way from
// memory, each the next row. Not all of them have registers at once everywhere; fewer gain no time
// in a step (docs/laboratory.md). Rows that no block holds in registers have more on the way.
// Measured on an H200 from 512 x 768 to 65536 x 4096.
static constexpr int64_t kColumnsUnderWay = 5120;
static constexpr int64_t kLongRow = 8192;
static constexpr int64_t kLeastRows = 4; // of a grain: each is one more part to add

bool sumsOverRows(FusedOp group, unsigned result) {
  Value value = group.getBody().front().getTerminator()->getOperand(result);
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  auto op = value.getDefiningOp<RowWiseOpInterface>();
  return op && op.sumsOverRows(cast<OpResult>(value).getResultNumber());
}

static int64_t blockGrain(int64_t rows, int64_t columns, int64_t multiprocessors) {
  int64_t blocks = columns > kLongRow ? 4 : std::clamp<int64_t>(kColumnsUnderWay / columns, 2, 8);
  return std::max(ceilDiv(rows, multiprocessors * blocks), std::min(rows, kLeastRows));
}

RowPartition partitionRows(FusedOp group, TargetAttr target) {
  RowDomain domain = group.getDomain();
  int64_t rows = domain.rows();
  // As if four f32 tensors were read or written: what a group holds besides must not change where
  // its sums are cut.
  int64_t bytesPerRow = 16 * domain.columns();
  int64_t grain = std::clamp<int64_t>(kGrainBytes / bytesPerRow, 1, ceilDiv(rows, kLeastGrains));
  for (unsigned i = 0; i < group->getNumResults(); ++i)
    if (sumsOverRows(group, i))
      grain = target.getMultiprocessors() > 0
                  ? blockGrain(rows, domain.columns(), target.getMultiprocessors())
                  : std::max(grain, ceilDiv(rows, kMostSummedGrains));
  return {rows, grain};
}

RowPartition partitionCombine(int64_t parts, int64_t columns) {
  int64_t grain = std::clamp<int64_t>(kGrainBytes / (4 * (parts + 1)), 1, columns);
  return {columns, std::min(columns, support::roundUp(grain, 16))};
}

} // namespace hydra
