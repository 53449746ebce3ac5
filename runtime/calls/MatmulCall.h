// What the action Matmul multiplies: the same on every target.
#pragma once

#include "runtime/calls/CallSite.h"

namespace hydra::runtime {

/// Which rows of a, or columns of b, share the scales of their blocks of support::kScaleBlock
/// elements of the sum: none, or as many neighbours. Not both operands have blocks of many rows.
struct BlockScales {
  bool ofManyRows = false;
  /// Between blocks of the sum, whose scales of all rows lie densely; of many rows between the
  /// neighbours, whose scales along the sum do.
  int64_t stride = 0;

  /// Which scale an element has: `row` of the operand (column of b), `k` along the sum.
  int64_t place(int64_t row, int64_t k) const {
    const int64_t block = k / support::kScaleBlock;
    return ofManyRows ? row / support::kScaleBlock * stride + block : block * stride + row;
  }
};

/// A batch of matrices: element (b0, b1, ..., row, column) lies b0*batchStrides[0] + ... +
/// row*rowStride + column*columnStride elements after the first. One of the last two strides must
/// be 1 and the other no less than the length of that dimension: rows do not overlap (a dimension
/// of length 1 has no stride). A batch stride may be 0 for an input.
struct MatmulOperand {
  support::DType dtype = support::DType::F32;
  std::vector<int64_t> batchStrides;
  int64_t rowStride = 0;
  int64_t columnStride = 1;
  BlockScales scales = {}; ///< of MatmulScales::Blocks
};

/// What operands of 8 bits are multiplied by, in f32.
enum class MatmulScales {
  None,
  Tensors, ///< a number for each operand
  Rows,    ///< one for each row of a, and one for each column of b
  Blocks,  ///< one for each support::kScaleBlock elements of the sum: see BlockScales
};

/// c[b] = a[b] @ b[b] (+ bias) (+ c[b]): a is m x k, b is k x n, c is m x n. Inputs f32, bf16 or
/// f16 (both alike), c likewise or f32, sums in f32. The bias, n values of the type of c, is added
/// to every row. Or inputs of 8 bits with scales that the sums are multiplied by, and c f32,
/// bf16 or f16. Or b of i8, a weight that lies by columns, with a scale for each that
/// sums are multiplied by before the bias is added, times at most support::kMostInt8Rows rows of
/// f32, bf16 or f16, and c likewise or f32: one matrix. Bytes of such a weight may have two numbers
/// (support::packInt4) and each group of a column a scale, by which its numbers are multiplied.
struct MatmulSpec {
  std::vector<int64_t> batch; // dimensions before the last two; empty for one matrix
  int64_t m = 0, n = 0, k = 0;
  MatmulOperand a, b, c;
  bool hasBias = false;
  bool hasWeightScale = false; // b is of i8
  bool packed = false;         // with two numbers in each byte, one behind the other along k
  MatmulScales scaling = MatmulScales::None;
  bool accumulate = false; // add to what c holds
  bool gelu = false;       // of the sums (GPUs only)
  bool savesSums = false;  // beside c, in its type and strides: what gelu was applied to
  bool tf32 = false;       // a and b, of f32, are rounded to tf32 first
  bool widen = false;      // on CPUs: multiply blocks that are converted to f32 first

  /// Places among the arguments of a step: scales, and c.
  size_t weightScale() const { return hasBias ? 3 : 2; } ///< where b is of i8
  size_t scales() const { return hasBias ? 3 : 2; }
  bool scaled() const { return scaling != MatmulScales::None; }
  size_t result() const { return scales() + (scaled() ? 2 : hasWeightScale ? 1 : 0); }
};

/// The matmul that a step asks for; MatmulCall.cpp lists the shapes. Throws Error when its
/// tensors do not fit.
MatmulSpec describeMatmul(const CallSite &site);

} // namespace hydra::runtime
