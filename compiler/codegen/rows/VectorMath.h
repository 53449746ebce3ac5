// Elementary functions as explicit sequences of correctly rounded operations, over float scalars or
// vectors of any width: a lane gets the bits that the scalar gets.
//
// Errors in units in the last place, over all floats (test/unit/codegen/VectorMathTest.cpp):
//
//   exp      1.0    overflow gives inf, results below the normal range are rounded, not flushed
//   log      0.8    log 0 = -inf, log of a negative number = nan, denormal arguments included
//   tanh     1.3    sigmoid  2.1    erf  1.1
//   sqrt, / and so rsqrt = 1 / sqrt: each operation exactly rounded
//
// A fused multiply-add is written as one; nothing else is contracted.
#pragma once

#include "compiler/codegen/rows/RowProgram.h"

#include "llvm/IR/IRBuilder.h"

namespace hydra {

class VectorMath {
public:
  /// For code in the function in which the builder stands.
  explicit VectorMath(llvm::IRBuilderBase &builder);

  llvm::Value *unary(RowUnary f, llvm::Value *x);
  llvm::Value *exp(llvm::Value *x);
  llvm::Value *log(llvm::Value *x);
  llvm::Value *tanh(llvm::Value *x);
  llvm::Value *erf(llvm::Value *x);
  llvm::Value *sigmoid(llvm::Value *x);
  llvm::Value *sqrt(llvm::Value *x);
  llvm::Value *rsqrt(llvm::Value *x);

  /// Of doubles, |x| < 2^30: errors below 1e-9 from the reduction by multiples of pi/2.
  struct SinCos {
    llvm::Value *sin, *cos;
  };
  SinCos sinCos(llvm::Value *x);
  /// Of a float, a double with its sine and cosine, below 2^24.
  llvm::Value *smallAngle(llvm::Value *x);

  /// The larger, a of two that are equal; nan where one is nan.
  llvm::Value *max(llvm::Value *a, llvm::Value *b);
  llvm::Value *min(llvm::Value *a, llvm::Value *b);

  /// The largest power of two that is no larger than x >= 0; 0 below the normal range, inf and nan
  /// stay.
  llvm::Value *powerOfTwo(llvm::Value *x);

  /// The upper 32 bits of the product of words without sign.
  llvm::Value *mulHigh(llvm::Value *a, llvm::Value *b);

  /// Numbers as the nearest of a narrow type, ties to even, still as floats; nans stay nans. Beyond
  /// the largest number of 8 bits is that number, of 16 bits infinity.
  llvm::Value *roundTo(RowType type, llvm::Value *x);
  /// A value of one type as one of another: rounded, towards zero to integers (saturating), nonzero
  /// to truth values.
  llvm::Value *convert(llvm::Value *x, RowType from, RowType to);

  /// Between elements in memory (narrow floats as i16 and i8, truth values as i8) and values
  /// (floats, i1).
  llvm::Value *fromMemory(llvm::Value *raw, RowType type);
  llvm::Value *toMemory(llvm::Value *x, RowType type);
  llvm::Type *memoryType(RowType type);
  llvm::Type *valueType(RowType type);

private:
  /// Constants and types shaped like x.
  llvm::Value *like(llvm::Value *x, double value);
  llvm::Value *likeInt(llvm::Value *x, uint32_t value);
  llvm::Type *intsLike(llvm::Value *x);
  llvm::Value *bits(llvm::Value *x) { return b.CreateBitCast(x, intsLike(x)); }
  llvm::Value *fma(llvm::Value *x, llvm::Value *y, llvm::Value *z);
  /// c[0] + c[1] x + …, by Horner's rule.
  llvm::Value *polynomial(llvm::Value *x, llvm::ArrayRef<double> c);
  llvm::Value *abs(llvm::Value *x);
  /// One of the constants for each number of an index; the function has them once under the name.
  llvm::Value *lookUp(llvm::ArrayRef<double> table, llvm::StringRef name, llvm::Value *index);

  /// b where `second` says so or where b is nan, else a.
  llvm::Value *choose(llvm::Value *second, llvm::Value *a, llvm::Value *b);
  /// Of 8 bits.
  llvm::Value *roundToEight(RowType type, llvm::Value *x);
  llvm::Value *eightFromMemory(llvm::Value *raw);
  llvm::Value *eightToMemory(llvm::Value *x);

  llvm::Value *scale(llvm::Value *p, llvm::Value *n, llvm::Value *shifted);

  llvm::IRBuilderBase &b;
  llvm::StringRef level; ///< target-cpu of the function
};

} // namespace hydra
