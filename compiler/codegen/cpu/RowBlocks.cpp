// What a generated kernel does with a block of neighbouring columns: loads, reductions, stores.
#include "compiler/codegen/cpu/RowCodegen.h"

using namespace llvm;

namespace hydra::cpu {

/// Computes everything of the block before it stores anything of it.
Values RowCodegen::emitBlock(bool last, const Block &block, ArrayRef<Value *> accumulators) {
  std::vector<Tile> tiles(block.chunks);
  for (auto [i, tile] : enumerate(tiles)) {
    tile.chunk.column = i ? b.CreateAdd(block.column, b.getInt64(i * kLanes)) : block.column;
    tile.chunk.mask = i + 1 == tiles.size() ? block.lastMask : nullptr;
  }
  auto summed = [&](const RowResult &result) { return node(result.node).inputs[0]; };
  for (Tile &tile : tiles) {
    if (sweep->prefetches)
      prefetchNextRow(tile);
    for (unsigned n : sweep->reductions)
      evaluate(node(n).inputs[0], tile);
    if (!last)
      continue;
    for (const RowResult &result : s.program.results) {
      if (!s.program.isSummed(result)) {
        if (result.form == RowForm::Tile)
          evaluate(result.node, tile);
      } else if (s.flat || isColumnSum(result)) {
        evaluate(summed(result), tile);
      }
    }
  }
  Values next(accumulators);
  auto accumulate = [&](size_t first, RowReduction r, unsigned value) {
    for (auto [i, tile] : enumerate(tiles)) {
      Value *&sum = next[first + i];
      Value *more = combine(r, sum, evaluate(value, tile));
      sum = tile.chunk.mask ? b.CreateSelect(tile.chunk.mask, more, sum) : more;
    }
  };
  size_t first = 0;
  for (unsigned n : sweep->reductions) {
    accumulate(first, static_cast<RowReduction>(node(n).code), node(n).inputs[0]);
    first += kAccumulators;
  }
  if (last && s.flat)
    for (const RowResult &result : s.program.results)
      if (s.program.isSummed(result)) {
        accumulate(first, RowReduction::Sum, summed(result));
        first += kAccumulators;
      }
  for (Tile &tile : tiles) {
    for (unsigned n : sweep->keeps)
      memory.storeVector(evaluate(n, tile), bufferPointer(n, tile.chunk), RowType::F32, nullptr);
    if (!last)
      continue;
    for (auto [i, result] : enumerate(s.program.results)) {
      if (!s.program.isSummed(result)) {
        if (result.form == RowForm::Tile)
          storeTile(i, tile);
      } else if (isColumnSum(result)) {
        addToColumnSum(i, tile);
      }
    }
  }
  return next;
}

void RowCodegen::prefetchNextRow(const Tile &tile) {
  for (auto [i, input] : enumerate(s.program.inputs)) {
    if (input.form != RowForm::Tile || s.inputs[i].pattern != Pattern::Dense)
      continue;
    Value *pointer = memory.elementPointer(nextRows[i], input.type, tile.chunk.column);
    b.CreateIntrinsic(Intrinsic::prefetch, {b.getPtrTy()},
                      {pointer, b.getInt32(0), b.getInt32(2), b.getInt32(1)});
  }
}

void RowCodegen::storeTile(unsigned number, Tile &tile) {
  const RowResult &result = s.program.results[number];
  Value *value = math.convert(evaluate(result.node, tile), node(result.node).type, result.type);
  memory.store(value, resultRows[number], s.results[number], result.type, tile.chunk,
               streaming && s.streams[number]);
}

void RowCodegen::addToColumnSum(unsigned number, Tile &tile) {
  const RowResult &result = s.program.results[number];
  Value *pointer =
      memory.elementPointer(resultPointers[number], RowType::F32, tile.chunk.column);
  Value *sum = memory.loadVector(pointer, RowType::F32, tile.chunk.mask);
  sum = b.CreateFAdd(sum, evaluate(node(result.node).inputs[0], tile));
  memory.storeVector(sum, pointer, RowType::F32, tile.chunk.mask);
}

//===-- Reductions over columns -------------------------------------------------------------===//

Value *RowCodegen::combine(RowReduction r, Value *x, Value *y) {
  return r == RowReduction::Sum ? b.CreateFAdd(x, y) : math.max(x, y);
}

/// -0 is what leaves every number as it is, -0 included.
Value *RowCodegen::identity(RowReduction r) {
  double value = r == RowReduction::Sum ? -0.0 : -std::numeric_limits<double>::infinity();
  return memory.splat(ConstantFP::get(b.getFloatTy(), value));
}

/// ((a0 + a1) + (a2 + a3)), then lanes i and i + 8, i and i + 4, i and i + 2, 0 and 1.
Value *RowCodegen::finishReduction(RowReduction r, ArrayRef<Value *> accumulators) {
  Value *vector = combine(r, combine(r, accumulators[0], accumulators[1]),
                          combine(r, accumulators[2], accumulators[3]));
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    SmallVector<int> low, high;
    for (int i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(i + static_cast<int>(half));
    }
    vector = combine(r, b.CreateShuffleVector(vector, low), b.CreateShuffleVector(vector, high));
  }
  return b.CreateExtractElement(vector, uint64_t(0));
}

} // namespace hydra::cpu
