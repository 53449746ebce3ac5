// Elementary functions of generated CUDA kernels: the special function unit where its error is a
// few units in the last place of f32, else the sequences of VectorMath.
#pragma once

#include "compiler/codegen/rows/VectorMath.h"

#include "llvm/ADT/DenseMap.h"

namespace hydra::cuda {

class DeviceMath {
public:
  explicit DeviceMath(llvm::IRBuilderBase &builder) : b(builder), exact(builder) {}

  llvm::Value *unary(RowUnary f, llvm::Value *x);
  llvm::Value *convert(llvm::Value *x, RowType from, RowType to);
  llvm::Value *fromMemory(llvm::Value *raw, RowType type);
  llvm::Value *toMemory(llvm::Value *x, RowType type);
  llvm::Type *memoryType(RowType type) { return exact.memoryType(type); }
  llvm::Value *max(llvm::Value *x, llvm::Value *y) { return choose("max.NaN.f32", x, y); }
  llvm::Value *min(llvm::Value *x, llvm::Value *y) { return choose("min.NaN.f32", x, y); }
  llvm::Value *mulHigh(llvm::Value *x, llvm::Value *y) { return exact.mulHigh(x, y); }
  /// Of a double, |x| < 2^30, as floats: reduced by multiples of 2 pi in f64, then 2^-21 at most.
  VectorMath::SinCos sinCos(llvm::Value *x);

private:
  /// e^x = 2^(x log2 e): 2 units, and |x| 2^-24 from the product.
  llvm::Value *exp(llvm::Value *x);
  /// 1 / x to 1 unit.
  llvm::Value *reciprocal(llvm::Value *x);
  llvm::Value *assembly(const char *text, llvm::Value *x);
  /// One of two, nan where one is nan.
  llvm::Value *choose(const char *instruction, llvm::Value *x, llvm::Value *y);
  /// Whether the architecture of the function converts floats of 8 bits; VectorMath does for
  /// others.
  bool convertsEight() const;
  /// Between floats and the patterns of 8 bits: rounded to nearest even, the largest number beyond
  /// it.
  llvm::Value *toEight(llvm::Value *x, RowType type);
  llvm::Value *fromEight(llvm::Value *raw, RowType type);
  /// The bits of two floats as bf16, rounded to nearest even: those of `high` in the upper half.
  llvm::Value *toPair(llvm::Value *high, llvm::Value *low);
  /// What `convert` rounded to `type` and made `x` of, or null: memory takes its bits from there.
  llvm::Value *sourceOf(llvm::Value *x, RowType type) const;

  struct Rounded {
    llvm::Value *source = nullptr;
    RowType type = RowType::F32;
  };

  llvm::IRBuilderBase &b;
  VectorMath exact;
  llvm::DenseMap<llvm::Value *, Rounded> roundedValues;
};

} // namespace hydra::cuda
