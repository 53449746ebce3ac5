// The kernel that adds partial sums of grains.
#include "compiler/codegen/cuda/RowKernelEmitter.h"
#include "runtime/support/Integers.h"

#include "llvm/IR/Module.h"

using namespace llvm;

namespace hydra::cuda {

using rows::emitIf;
using rows::Strided;
using rows::TensorAccess;
using support::ceilDiv;

LaunchShape emitCombine(Function *function, int64_t parts, ArrayRef<int64_t> shape,
                        ArrayRef<int64_t> strides, RowType type) {
  // A warp has 32 columns; the warps share the parts, and the first adds their sums.
  const int64_t warps = parts > 128 ? 32 : 8;
  TensorAccess access = rows::accessOf(shape, strides);
  int64_t columns = 1;
  for (int64_t size : shape)
    columns *= size;
  IRBuilder<> b(BasicBlock::Create(function->getContext(), "entry", function));
  DeviceMath math(b);
  SmallVector<Value *> arguments = kernelArguments(b, function);
  Value *thread = specialRegister(b, Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value *block = specialRegister(b, Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  Value *lane = b.CreateAnd(thread, b.getInt32(kWarp - 1)), *warp = b.CreateLShr(thread, 5);
  Value *element =
      b.CreateZExt(b.CreateAdd(b.CreateMul(block, b.getInt32(kWarp)), lane), b.getInt64Ty());
  Value *exists = b.CreateICmpULT(element, b.getInt64(columns));
  Value *column = b.CreateSelect(exists, element, b.getInt64(0));
  auto part = [&](Value *number) {
    Value *offset = b.CreateAdd(b.CreateMul(number, b.getInt64(columns)), column);
    return b.CreateAlignedLoad(b.getFloatTy(),
                               b.CreateInBoundsGEP(b.getFloatTy(), arguments[0], offset), Align(4));
  };
  // Four loads under way for each thread.
  constexpr int64_t lanes = 4;
  Value *zero = ConstantFP::get(b.getFloatTy(), -0.0);
  Value *first = b.CreateZExt(warp, b.getInt64Ty());
  rows::Values sums(lanes, zero);
  sums = rows::emitLoop(b, first, b.getInt64(parts), warps * lanes, sums,
                        [&](Value *number, ArrayRef<Value *> current) {
                          rows::Values next;
                          for (int64_t i = 0; i < lanes; ++i) {
                            Value *at = b.CreateAdd(number, b.getInt64(i * warps));
                            Value *inside = b.CreateICmpULT(at, b.getInt64(parts));
                            Value *value = part(b.CreateSelect(inside, at, number));
                            next.push_back(
                                b.CreateFAdd(current[i], b.CreateSelect(inside, value, zero)));
                          }
                          return next;
                        });
  Value *sum = b.CreateFAdd(b.CreateFAdd(sums[0], sums[1]), b.CreateFAdd(sums[2], sums[3]));
  auto *sharedType = ArrayType::get(b.getFloatTy(), warps * kWarp);
  auto *shared =
      new GlobalVariable(*function->getParent(), sharedType, false, GlobalValue::InternalLinkage,
                         UndefValue::get(sharedType), function->getName() + "_shared", nullptr,
                         GlobalValue::NotThreadLocal, kSharedMemory);
  shared->setAlignment(Align(16));
  b.CreateAlignedStore(sum, b.CreateInBoundsGEP(b.getFloatTy(), shared, thread), Align(4));
  b.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all, ArrayRef<Type *>(),
                    ArrayRef<Value *>(b.getInt32(0)));
  emitIf(b, b.CreateAnd(b.CreateICmpULT(thread, b.getInt32(kWarp)), exists), [&] {
    Value *total = sum;
    for (int64_t w = 1; w < warps; ++w)
      total = b.CreateFAdd(
          total,
          b.CreateAlignedLoad(b.getFloatTy(),
                              b.CreateInBoundsGEP(b.getFloatTy(), shared,
                                                  b.CreateAdd(thread, b.getInt32(w * kWarp))),
                              Align(4)));
    Value *offset = b.getInt64(0), *position = element;
    for (const Strided::Dim &dim : reverse(access.columns.dims)) {
      Value *at = b.CreateURem(position, b.getInt64(dim.size));
      position = b.CreateUDiv(position, b.getInt64(dim.size));
      offset = b.CreateAdd(offset, b.CreateMul(at, b.getInt64(dim.stride)));
    }
    Value *value = math.toMemory(math.convert(total, RowType::F32, type), type);
    b.CreateAlignedStore(value, b.CreateInBoundsGEP(math.memoryType(type), arguments[1], offset),
                         Align(storageBytes(type)));
  });
  b.CreateRetVoid();
  return {ceilDiv(columns, kWarp), warps * kWarp};
}

} // namespace hydra::cuda
