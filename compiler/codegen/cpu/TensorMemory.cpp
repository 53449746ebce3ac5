// Loads and stores of 16 neighbouring columns.
#include "compiler/codegen/cpu/TensorMemory.h"

#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace hydra::cpu {

/// position = ((i0 size1 + i1) size2 + i2) …;  offset = i0 stride0 + i1 stride1 + …
Value *TensorMemory::offsetOf(const Strided &strided, Value *position) {
  Type *type = position->getType();
  Value *offset = nullptr;
  for (size_t d = strided.dims.size(); d-- > 0;) {
    auto [size, stride] = strided.dims[d];
    Value *index = position;
    if (d > 0) {
      index = b.CreateURem(position, ConstantInt::get(type, size));
      position = b.CreateUDiv(position, ConstantInt::get(type, size));
    }
    if (stride == 0)
      continue;
    Value *term = b.CreateMul(index, ConstantInt::get(type, stride));
    offset = offset ? b.CreateAdd(offset, term) : term;
  }
  return offset ? offset : ConstantInt::get(type, 0);
}

Value *TensorMemory::loadOne(Value *pointer, RowType type) {
  return math.fromMemory(b.CreateAlignedLoad(math.memoryType(type), pointer, alignOf(type)), type);
}

void TensorMemory::storeOne(Value *value, Value *pointer, RowType type) {
  b.CreateAlignedStore(math.toMemory(value, type), pointer, alignOf(type));
}

Value *TensorMemory::loadVector(Value *pointer, RowType type, Value *mask) {
  VectorType *vector = vectorOf(math.memoryType(type));
  Value *raw = mask ? static_cast<Value *>(b.CreateMaskedLoad(vector, pointer, alignOf(type), mask,
                                                              Constant::getNullValue(vector)))
                    : b.CreateAlignedLoad(vector, pointer, alignOf(type));
  return math.fromMemory(raw, type);
}

/// The same mask, of which the code generator knows nothing. LLVM 22 stores the one lane that a
/// constant mask leaves of narrowed elements in the width they had before, over their neighbours.
static Value *unknownMask(IRBuilderBase &b, Value *mask) {
  auto *vector = cast<FixedVectorType>(mask->getType());
  Type *bits = b.getIntNTy(vector->getNumElements());
  auto *type = FunctionType::get(bits, {bits}, false);
  Value *same = b.CreateCall(InlineAsm::get(type, "", "=r,0", /*hasSideEffects=*/false),
                             {b.CreateBitCast(mask, bits)});
  return b.CreateBitCast(same, vector);
}

void TensorMemory::storeVector(Value *value, Value *pointer, RowType type, Value *mask,
                               bool stream) {
  value = math.toMemory(value, type);
  if (mask) {
    if (storageBytes(type) < 4)
      mask = unknownMask(b, mask);
    b.CreateMaskedStore(value, pointer, alignOf(type), mask);
    return;
  }
  Align alignment(stream ? kLanes * storageBytes(type) : storageBytes(type));
  StoreInst *store = b.CreateAlignedStore(value, pointer, alignment);
  if (stream)
    store->setMetadata(LLVMContext::MD_nontemporal,
                       MDNode::get(b.getContext(), ConstantAsMetadata::get(b.getInt32(1))));
}

Value *TensorMemory::lanePointers(Value *row, const TensorAccess &access, RowType type,
                                  Value *columns) {
  bool small = access.columns.lastOffset() <= INT32_MAX;
  if (!small && !columns->getType()->getScalarType()->isIntegerTy(64))
    columns = b.CreateZExt(columns, vectorOf(b.getInt64Ty()));
  return b.CreateGEP(math.memoryType(type), row, offsetOf(access.columns, columns));
}

Value *TensorMemory::loadLanes(Value *row, const TensorAccess &access, RowType type, Value *columns,
                               Value *mask) {
  VectorType *vector = vectorOf(math.memoryType(type));
  return math.fromMemory(b.CreateMaskedGather(vector, lanePointers(row, access, type, columns),
                                              alignOf(type), mask ? mask : allLanes(),
                                              Constant::getNullValue(vector)),
                         type);
}

Value *TensorMemory::load(Value *row, const TensorAccess &access, RowType type,
                          const Chunk &chunk) {
  switch (access.pattern) {
  case Pattern::Same:
    return splat(loadOne(row, type));
  case Pattern::Dense:
    return loadVector(elementPointer(row, type, chunk.column), type, chunk.mask);
  case Pattern::Blocks: {
    Value *first = elementPointer(row, type, offsetOf(access.columns, chunk.column));
    if (access.columns.dims.back().stride == 0)
      return splat(loadOne(first, type));
    return loadVector(first, type, chunk.mask);
  }
  case Pattern::Scattered:
    return loadLanes(row, access, type, laneColumns(chunk), chunk.mask);
  }
  llvm_unreachable("four patterns");
}

void TensorMemory::store(Value *value, Value *row, const TensorAccess &access, RowType type,
                         const Chunk &chunk, bool stream) {
  switch (access.pattern) {
  case Pattern::Same: // one column
    return storeOne(b.CreateExtractElement(value, uint64_t(0)), row, type);
  case Pattern::Dense:
    return storeVector(value, elementPointer(row, type, chunk.column), type, chunk.mask, stream);
  case Pattern::Blocks:
    return storeVector(value, elementPointer(row, type, offsetOf(access.columns, chunk.column)),
                       type, chunk.mask);
  case Pattern::Scattered: {
    Value *pointers = lanePointers(row, access, type, laneColumns(chunk));
    b.CreateMaskedScatter(math.toMemory(value, type), pointers, alignOf(type),
                          chunk.mask ? chunk.mask : allLanes());
    return;
  }
  }
}

Value *TensorMemory::laneColumns(const Chunk &chunk) {
  Type *integer = wide ? b.getInt64Ty() : b.getInt32Ty();
  SmallVector<Constant *> lanes;
  for (int64_t i = 0; i < kLanes; ++i)
    lanes.push_back(ConstantInt::get(integer, i));
  return b.CreateAdd(splat(b.CreateTrunc(chunk.column, integer)), ConstantVector::get(lanes));
}

Value *TensorMemory::firstLanes(int64_t count) {
  SmallVector<Constant *> lanes;
  for (int64_t i = 0; i < kLanes; ++i)
    lanes.push_back(b.getInt1(i < count));
  return ConstantVector::get(lanes);
}

Value *TensorMemory::firstLanes(Value *count) {
  SmallVector<Constant *> lanes;
  for (int64_t i = 0; i < kLanes; ++i)
    lanes.push_back(b.getInt32(i));
  return b.CreateICmpULT(ConstantVector::get(lanes), splat(b.CreateTrunc(count, b.getInt32Ty())));
}

} // namespace hydra::cpu
