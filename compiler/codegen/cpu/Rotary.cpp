// Cosine and sine tables of a row, and the rotation of its chunks.
#include "compiler/codegen/cpu/Rotary.h"

#include "runtime/support/Integers.h"

#include "llvm/IR/Module.h"

#include <cmath>

using namespace llvm;

namespace hydra::cpu {

using support::roundUp;

/// Doubles at a time.
static constexpr int64_t kPairs = 8;

Rotary::Rotary(IRBuilderBase &builder, const Rotation &rotation, int64_t width, int64_t columns)
    : b(builder), math(builder), memory(builder, columns), rotation(rotation), width(width) {
  int64_t pairs = width / 2;
  std::vector<double> inverse(roundUp(pairs, kPairs), 0.0);
  for (int64_t i = 0; i < pairs; ++i)
    inverse[i] = std::pow(rotation.base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
  Constant *values = ConstantDataArray::get(b.getContext(), inverse);
  auto *global = new GlobalVariable(*b.GetInsertBlock()->getModule(), values->getType(),
                                    /*isConstant=*/true, GlobalValue::PrivateLinkage, values,
                                    "inverse_frequencies");
  global->setAlignment(Align(64));
  frequencies = global;
  // Past the width the tables repeat, so that 16 columns from any column of a head are a vector.
  auto reserve = [&] {
    AllocaInst *table = b.CreateAlloca(
        b.getFloatTy(), b.getInt64(roundUp(width, 2 * kPairs) + 2 * kPairs + kLanes));
    table->setAlignment(Align(64));
    return table;
  };
  cosines = reserve();
  sines = reserve();
}

Value *Rotary::table(Value *base, Value *column) {
  return memory.elementPointer(base, RowType::F32, column);
}

void Rotary::prepare(Value *row, Value *given) {
  Value *position = given ? b.CreateFPToUI(given, b.getInt64Ty())
                          : b.CreateURem(row, b.getInt64(rotation.length));
  if (rotation.period > 0)
    position = b.CreateURem(position, b.getInt64(rotation.period));
  position = b.CreateVectorSplat(kPairs, b.CreateUIToFP(position, b.getDoubleTy()));
  auto *doubles = FixedVectorType::get(b.getDoubleTy(), kPairs);
  auto *floats = FixedVectorType::get(b.getFloatTy(), kPairs);
  int64_t pairs = width / 2;
  emitLoop(b, b.getInt64(0), b.getInt64(pairs), kPairs, {}, [&](Value *pair, ArrayRef<Value *>) {
    Value *at = b.CreateGEP(b.getDoubleTy(), frequencies, pair);
    Value *angle = b.CreateFMul(position, b.CreateAlignedLoad(doubles, at, Align(64)));
    VectorMath::SinCos f = math.sinCos(angle);
    storePairs(pair, b.CreateFPTrunc(f.cos, floats), b.CreateFPTrunc(f.sin, floats));
    return Values();
  });
  if (rotation.halfSplit) { // the second half has the same cosines and the other sign
    emitLoop(b, b.getInt64(0), b.getInt64(pairs), kPairs, {}, [&](Value *pair, ArrayRef<Value *>) {
      Value *second = b.CreateAdd(pair, b.getInt64(pairs));
      Value *cos = b.CreateAlignedLoad(floats, table(cosines, pair), Align(4));
      Value *sin = b.CreateAlignedLoad(floats, table(sines, pair), Align(4));
      b.CreateAlignedStore(cos, table(cosines, second), Align(4));
      b.CreateAlignedStore(b.CreateFNeg(sin), table(sines, second), Align(4));
      return Values();
    });
  }
  if (width % kLanes != 0) {
    repeat(cosines);
    repeat(sines);
  }
}

/// The first of a pair takes -sin, rotating back +sin.
void Rotary::storePairs(Value *pair, Value *cos, Value *sin) {
  Value *first = rotation.inverse ? sin : b.CreateFNeg(sin);
  if (rotation.halfSplit) {
    b.CreateAlignedStore(cos, table(cosines, pair), Align(4));
    b.CreateAlignedStore(first, table(sines, pair), Align(4));
    return;
  }
  SmallVector<int> mix;
  for (int i = 0; i < kPairs; ++i)
    mix.append({i, i + static_cast<int>(kPairs)});
  Value *column = b.CreateMul(pair, b.getInt64(2));
  b.CreateAlignedStore(b.CreateShuffleVector(cos, cos, mix), table(cosines, column), Align(4));
  b.CreateAlignedStore(b.CreateShuffleVector(first, b.CreateFNeg(first), mix),
                       table(sines, column), Align(4));
}

void Rotary::repeat(Value *base) {
  emitLoop(b, b.getInt64(0), b.getInt64(kLanes), 1, {}, [&](Value *i, ArrayRef<Value *>) {
    Value *again = table(base, b.CreateAdd(i, b.getInt64(width)));
    memory.storeOne(memory.loadOne(table(base, i), RowType::F32), again, RowType::F32);
    return Values();
  });
}

Value *Rotary::rotate(Value *rowPointer, const TensorAccess &access, RowType type,
                      const Chunk &chunk) {
  Value *x = memory.load(rowPointer, access, type, chunk);
  Value *other = partner(rowPointer, access, type, chunk, x);
  Value *column = b.CreateURem(chunk.column, b.getInt64(width));
  Value *cos = memory.loadVector(table(cosines, column), RowType::F32, nullptr);
  Value *sin = memory.loadVector(table(sines, column), RowType::F32, nullptr);
  return b.CreateFAdd(b.CreateFMul(x, cos), b.CreateFMul(other, sin));
}

/// The other elements of the pairs.
Value *Rotary::partner(Value *rowPointer, const TensorAccess &access, RowType type,
                       const Chunk &chunk, Value *x) {
  if (!rotation.halfSplit) {
    SmallVector<int> swap;
    for (int i = 0; i < kLanes; ++i)
      swap.push_back(i ^ 1);
    return b.CreateShuffleVector(x, swap);
  }
  Value *half = b.getInt64(width / 2);
  if (width / 2 % kLanes == 0) { // a chunk lies in one half
    Value *first = b.CreateICmpULT(b.CreateURem(chunk.column, b.getInt64(width)), half);
    Value *step = b.CreateSelect(first, half, b.CreateNeg(half));
    return memory.load(rowPointer, access, type,
                       {b.CreateAdd(chunk.column, step), chunk.mask});
  }
  Value *columns = memory.laneColumns(chunk);
  Type *integers = columns->getType();
  Value *inHead = b.CreateURem(columns, ConstantInt::get(integers, width));
  Value *first = b.CreateICmpULT(inHead, ConstantInt::get(integers, width / 2));
  if (access.pattern != Pattern::Dense) {
    Value *step = ConstantInt::get(integers, width / 2);
    Value *others = b.CreateSelect(first, b.CreateAdd(columns, step), b.CreateSub(columns, step));
    return memory.loadLanes(rowPointer, access, type, others, chunk.mask);
  }
  auto part = [&](Value *lanes, Value *from) {
    Value *mask = chunk.mask ? b.CreateAnd(lanes, chunk.mask) : lanes;
    return memory.loadVector(memory.elementPointer(rowPointer, type, from), type, mask);
  };
  Value *up = part(first, b.CreateAdd(chunk.column, half));
  Value *down = part(b.CreateNot(first), b.CreateSub(chunk.column, half));
  return b.CreateSelect(first, up, down);
}

} // namespace hydra::cpu
