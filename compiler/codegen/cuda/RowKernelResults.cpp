// Code for groups of row-wise operations: what leaves a thread, and what threads of a row do
// together.
#include "compiler/codegen/cuda/RowKernelEmitter.h"

#include "llvm/IR/Module.h"

#include <limits>

using namespace llvm;

namespace hydra::cuda {

using rows::emitIf;
using rows::RowSchedule;
using rows::Strided;
using rows::TensorAccess;
using Kind = RowNode::Kind;

//===-- Results -----------------------------------------------------------------------------===//

void RowKernelEmitter::whenValid(const Chunk &chunk, function_ref<void()> body) {
  if (chunk.valid)
    emitIf(b, chunk.valid, body);
  else
    body();
}

void RowKernelEmitter::storeTiles(const Chunk &chunk) {
  const unsigned made = loadsMade;
  // A result may lie on an input that only a sum reads: all is read before anything is stored.
  for (const RowResult &result : s.program.results)
    if (s.program.isSummed(result) && (s.flat || isColumnSum(result)))
      evaluateTile(s.program.nodes[result.node].inputs[0], chunk);
  SmallVector<std::pair<unsigned, SmallVector<Value *>>> ready;
  for (auto [i, result] : enumerate(s.program.results)) {
    if (s.program.isSummed(result) ||
        (!variesOverColumns(result.form) && !(s.flat && result.form == RowForm::Scalar)))
      continue;
    SmallVector<Value *> values = evaluateTile(result.node, chunk);
    RowType from = s.program.nodes[result.node].type;
    for (Value *&value : values)
      value = math.toMemory(math.convert(value, from, result.type), result.type);
    ready.emplace_back(i, std::move(values));
  }
  if (ready.empty())
    return;
  // A result that lies on an input may not depend on it. Where the load of that input is still
  // under way as the store arrives, the second cache takes many times as long for both: results
  // that wait for the latest loads are stored first, and a warp issues the others' stores behind
  // them.
  const std::vector<unsigned> last = lastLoads(chunk, made);
  stable_sort(ready, [&](const auto &a, const auto &b) {
    auto of = [&](const auto &r) { return last[s.program.results[r.first].node]; };
    return of(a) > of(b);
  });
  whenValid(chunk, [&] {
    for (auto &[i, values] : ready)
      storeChunk(i, values, chunk);
  });
}

void RowKernelEmitter::storeChunk(unsigned number, ArrayRef<Value *> values, const Chunk &chunk) {
  const RowResult &result = s.program.results[number];
  const TensorAccess &access = s.results[number];
  unsigned bytes = storageBytes(result.type);
  Value *base = s.flat ? results[number] : resultRows[number];
  if (s.flat && result.form == RowForm::Scalar) {
    emitIf(b, b.CreateICmpEQ(chunk.column, b.getInt64(0)),
           [&] { b.CreateAlignedStore(values[0], base, Align(bytes)); });
    return;
  }
  if (result.form == RowForm::Column && s.rows > 1) {
    emitIf(b, b.CreateICmpEQ(chunk.row, b.getInt32(0)),
           [&] { storeAt(base, access, result, bytes, number, values, chunk.column); });
    return;
  }
  storeAt(base, access, result, bytes, number, values, chunk.column);
}

void RowKernelEmitter::storeAt(Value *base, const TensorAccess &access, const RowResult &result,
                               unsigned bytes, unsigned number, ArrayRef<Value *> values,
                               Value *column) {
  if (isVector(access, width, bytes, resultAlignment[number])) {
    Value *vector = PoisonValue::get(FixedVectorType::get(math.memoryType(result.type), width));
    for (int64_t v = 0; v < width; ++v)
      vector = b.CreateInsertElement(vector, values[v], v);
    b.CreateAlignedStore(vector,
                         elementPointer(base, offsetOf(access.columns, column), result.type),
                         vectorAlignment(width * bytes));
    return;
  }
  for (int64_t v = 0; v < width; ++v)
    b.CreateAlignedStore(
        values[v], elementPointer(base, offsetOf(access.columns, plus(column, v)), result.type),
        Align(bytes));
}

void RowKernelEmitter::storeRowResults(Value *isOne) {
  SmallVector<unsigned> numbers;
  for (auto [i, result] : enumerate(s.program.results))
    if (!s.program.isSummed(result) && !variesOverColumns(result.form))
      numbers.push_back(i);
  if (numbers.empty())
    return;
  if (rowValid)
    isOne = b.CreateAnd(isOne, rowValid);
  emitIf(b, isOne, [&] {
    for (unsigned i : numbers) {
      const RowResult &result = s.program.results[i];
      Value *value = math.toMemory(
          math.convert(evaluateRow(result.node), s.program.nodes[result.node].type, result.type),
          result.type);
      Value *pointer = result.form == RowForm::Row ? resultRows[i] : results[i];
      auto storeValue = [&] {
        b.CreateAlignedStore(value, pointer, Align(storageBytes(result.type)));
      };
      if (result.form == RowForm::Scalar && s.rows > 1)
        emitIf(b, b.CreateICmpEQ(currentRow, b.getInt32(0)), storeValue);
      else
        storeValue();
    }
  });
}

//===-- Sums over rows ----------------------------------------------------------------------===//

bool RowKernelEmitter::isColumnSum(const RowResult &result) const {
  return variesOverColumns(s.program.nodes[result.node].form);
}

bool RowKernelEmitter::hasColumnResults() const {
  return any_of(s.program.results, [&](const RowResult &result) {
    return s.program.isSummed(result) ? isColumnSum(result) : variesOverColumns(result.form);
  });
}

AllocaInst *RowKernelEmitter::allocate(int64_t count) {
  BasicBlock &entry = function->getEntryBlock();
  IRBuilder<> at(&entry, entry.begin());
  return at.CreateAlloca(ArrayType::get(b.getFloatTy(), count));
}

Value *RowKernelEmitter::slot(AllocaInst *memory, int64_t i) {
  return b.CreateConstInBoundsGEP1_64(b.getFloatTy(), memory, i);
}

Value *RowKernelEmitter::load(AllocaInst *memory, int64_t i) {
  return b.CreateAlignedLoad(b.getFloatTy(), slot(memory, i), Align(4));
}

void RowKernelEmitter::store(Value *value, AllocaInst *memory, int64_t i) {
  b.CreateAlignedStore(value, slot(memory, i), Align(4));
}

std::vector<AllocaInst *> RowKernelEmitter::makeSums(int64_t count) {
  std::vector<AllocaInst *> sums(s.program.results.size(), nullptr);
  for (auto [i, result] : enumerate(s.program.results)) {
    if (!s.program.isSummed(result))
      continue;
    sums[i] = allocate(count);
    for (int64_t n = 0; n < count; ++n)
      store(identity(RowReduction::Sum), sums[i], n);
  }
  return sums;
}

void RowKernelEmitter::keepColumns() {
  currentRow = b.getInt32(0);
  for (int64_t k = 0; k < kept; ++k) {
    Chunk chunk = keptChunk(b.getInt32(0), k);
    for (auto [i, node] : enumerate(s.program.nodes))
      if (node.form == RowForm::Column && node.kind != Kind::SumRows)
        keptTiles[{i, k}] = evaluateTile(i, chunk);
  }
  tiles.clear();
}

void RowKernelEmitter::addSums(ArrayRef<AllocaInst *> sums, const Chunk &chunk) {
  for (auto [i, result] : enumerate(s.program.results))
    if (s.program.isSummed(result))
      accumulate(RowReduction::Sum, sums[i], s.program.nodes[result.node].inputs[0], chunk);
}

void RowKernelEmitter::addColumnSums(ArrayRef<AllocaInst *> sums, const Chunk &chunk) {
  for (auto [i, result] : enumerate(s.program.results)) {
    if (!s.program.isSummed(result) || !isColumnSum(result))
      continue;
    SmallVector<Value *> values = evaluateTile(s.program.nodes[result.node].inputs[0], chunk);
    if (inRegisters) {
      for (int64_t v = 0; v < width; ++v) {
        int64_t at = chunk.number * width + v;
        store(b.CreateFAdd(load(sums[i], at), values[v]), sums[i], at);
      }
      continue;
    }
    // Too many columns for registers: the row of partial sums itself, each element by one thread.
    whenValid(chunk, [&] {
      for (int64_t v = 0; v < width; ++v) {
        Value *pointer = partialPointer(i, plus(chunk.column, v));
        Value *before = b.CreateSelect(isFirstRow, identity(RowReduction::Sum),
                                       b.CreateAlignedLoad(b.getFloatTy(), pointer, Align(4)));
        b.CreateAlignedStore(b.CreateFAdd(before, values[v]), pointer, Align(4));
      }
    });
  }
}

Value *RowKernelEmitter::partialPointer(unsigned number, Value *column) {
  Value *row = b.CreateMul(b.CreateZExt(block, b.getInt64Ty()), b.getInt64(s.columns));
  return b.CreateInBoundsGEP(b.getFloatTy(), results[number],
                             b.CreateAdd(row, b.CreateZExt(column, b.getInt64Ty())));
}

void RowKernelEmitter::storeColumnSums(unsigned number, AllocaInst *sums) {
  for (int64_t k = 0; k < kept; ++k) {
    Chunk chunk = keptChunk(nullptr, k);
    whenValid(chunk, [&] {
      for (int64_t v = 0; v < width; ++v)
        b.CreateAlignedStore(load(sums, k * width + v),
                             partialPointer(number, plus(chunk.column, v)), Align(4));
    });
  }
}

void RowKernelEmitter::storeScalarSum(unsigned number, Value *sum) {
  emitIf(b, b.CreateICmpEQ(thread, b.getInt32(0)), [&] {
    b.CreateAlignedStore(
        sum,
        b.CreateInBoundsGEP(b.getFloatTy(), results[number], b.CreateZExt(block, b.getInt64Ty())),
        Align(4));
  });
}

//===-- Reductions --------------------------------------------------------------------------===//

RowReduction RowKernelEmitter::reductionOf(unsigned node) const {
  return static_cast<RowReduction>(s.program.nodes[node].code);
}

Value *RowKernelEmitter::combine(RowReduction r, Value *x, Value *y) {
  return r == RowReduction::Sum ? b.CreateFAdd(x, y) : math.max(x, y);
}

Value *RowKernelEmitter::identity(RowReduction r) {
  double value = r == RowReduction::Sum ? -0.0 : -std::numeric_limits<double>::infinity();
  return ConstantFP::get(b.getFloatTy(), value);
}

void RowKernelEmitter::accumulate(RowReduction r, AllocaInst *memory, unsigned node,
                                  const Chunk &chunk) {
  SmallVector<Value *> values = evaluateTile(node, chunk);
  Value *sum = values[0];
  for (Value *value : drop_begin(values))
    sum = combine(r, sum, value);
  if (chunk.valid)
    sum = b.CreateSelect(chunk.valid, sum, identity(r));
  store(combine(r, load(memory), sum), memory);
}

void RowKernelEmitter::barrier() {
  b.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all, ArrayRef<Type *>(),
                    ArrayRef<Value *>(b.getInt32(0)));
}

Value *RowKernelEmitter::butterfly(RowReduction r, Value *x) {
  for (int distance = std::min(team, kWarp) / 2; distance > 0; distance /= 2) {
    Value *bits =
        b.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_bfly_i32, ArrayRef<Type *>(),
                          ArrayRef<Value *>{b.getInt32(-1), b.CreateBitCast(x, b.getInt32Ty()),
                                            b.getInt32(distance), b.getInt32(kWarp - 1)});
    x = combine(r, x, b.CreateBitCast(bits, b.getFloatTy()));
  }
  return x;
}

Value *RowKernelEmitter::reduceTeam(RowReduction r, Value *x) {
  x = butterfly(r, x);
  if (team <= kWarp)
    return x;
  int64_t warps = team / kWarp;
  auto *type = ArrayType::get(b.getFloatTy(), warps);
  auto *shared = new GlobalVariable(
      *function->getParent(), type, false, GlobalValue::InternalLinkage, UndefValue::get(type),
      function->getName() + "_shared", nullptr, GlobalValue::NotThreadLocal, kSharedMemory);
  shared->setAlignment(Align(16));
  if (!lane)
    lane = b.CreateAnd(thread, b.getInt32(kWarp - 1));
  Value *warp = b.CreateLShr(thread, 5);
  auto at = [&](Value *i) { return b.CreateInBoundsGEP(b.getFloatTy(), shared, i); };
  emitIf(b, b.CreateICmpEQ(lane, b.getInt32(0)),
         [&] { b.CreateAlignedStore(x, at(warp), Align(4)); });
  barrier();
  Value *exists = b.CreateICmpULT(lane, b.getInt32(warps));
  Value *read = b.CreateAlignedLoad(b.getFloatTy(), at(b.CreateSelect(exists, lane, b.getInt32(0))),
                                    Align(4));
  return butterfly(r, b.CreateSelect(exists, read, identity(r)));
}

} // namespace hydra::cuda
