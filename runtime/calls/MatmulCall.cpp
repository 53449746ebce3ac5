// The action Matmul: which matrices the tensors of a step are.
//
//   matmul(a, b, [bias,] [scale of a, scale of b | scale of the weight,] c [, sums])   c = a b (+
//   bias) (+ c)
//
// Shapes, with any strides of which one of the last two is 1:
//   a [..., M, K], b [..., K, N], c [..., M, N]   leading dimensions alike: a batch
//   a [..., K],    b [K, N],      c [..., N]      a linear layer: leading dimensions are rows
//   a [..., K, M], b [..., K, N], c [M, N]        with transpose_a, a weight gradient: leading
//                                                 dimensions are summed over
// A bias [N] in the type of c is added to every row. Scales are of operands of 8 bits, which lie by
// rows of what is summed over: [] each, or [M] and [N], or of blocks of 128 elements of the sum.
// These are [K/128, M] and [K/128, N], or for one of the operands, of 128 rows each, [M/128, K/128]
// or [N/128, K/128] with any stride between rows; quotients are rounded up.
// A weight b of i8 has few rows of a and a scale [N]: its integers are multiplied as they are, the
// sums scaled. Of [N, K/2] with a scale [N, K/32] of bf16 each byte has two numbers of 4 bits,
// which are scaled by groups before they are multiplied.
#include "runtime/calls/MatmulCall.h"

#include "runtime/support/Int4Groups.h"
#include "runtime/support/Safetensors.h"

#include <algorithm>

using namespace hydra::runtime;
namespace planfile = hydra::planfile;
namespace support = hydra::support;

namespace {

/// Merges all dimensions but the last into one, so that the result has rank 2.
TensorShape mergeLeading(const CallSite &site, const TensorShape &shape, std::string_view name) {
  const size_t last = shape.rank() - 1;
  TensorShape merged{shape.dtype, {1, shape.sizes[last]}, {0, shape.strides[last]}};
  for (size_t d = last; d-- > 0;) {
    if (shape.sizes[d] == 1)
      continue;
    if (merged.sizes[0] == 1)
      merged.strides[0] = shape.strides[d];
    else if (shape.strides[d] != merged.strides[0] * merged.sizes[0])
      site.fail("{} {} with strides {} is no matrix: its leading dimensions do not merge", name,
                support::shapeText(shape.sizes), support::shapeText(shape.strides));
    merged.sizes[0] *= shape.sizes[d];
  }
  return merged;
}

MatmulOperand operand(const TensorShape &shape, bool transposed) {
  const size_t row = shape.rank() - (transposed ? 1 : 2),
               column = shape.rank() - (transposed ? 2 : 1);
  return {shape.dtype,
          {shape.strides.begin(), shape.strides.end() - 2},
          shape.strides[row],
          shape.strides[column]};
}

/// Rows of one matrix must lie apart, and one of its dimensions densely.
void checkMatrix(const CallSite &site, const MatmulOperand &matrix, int64_t rows, int64_t columns,
                 std::string_view name) {
  const auto lies = [](int64_t inner, int64_t innerStride, int64_t outer, int64_t outerStride) {
    return (inner == 1 || innerStride == 1) && (outer == 1 || outerStride >= inner);
  };
  if (!lies(columns, matrix.columnStride, rows, matrix.rowStride) &&
      !lies(rows, matrix.rowStride, columns, matrix.columnStride))
    site.fail(
        "{} [{}, {}] has strides [{}, {}]; expected one of them to be 1 and the other to be no "
        "less than the length of that dimension",
        name, rows, columns, matrix.rowStride, matrix.columnStride);
}

/// Scales of blocks of an operand of so many rows; nullopt where they are none. One row alone is no
/// different from many.
std::optional<BlockScales> blocksOf(const TensorShape &scale, int64_t rows, int64_t k) {
  const int64_t blocks = support::scaleBlocks(k), ofRows = support::scaleBlocks(rows);
  if (scale.dtype != support::DType::F32 || scale.rank() != 2)
    return std::nullopt;
  if (scale.sizes == std::vector{blocks, rows} && scale.isDense())
    return BlockScales{false, rows};
  if (scale.sizes != std::vector{ofRows, blocks} || (blocks > 1 && scale.strides[1] != 1) ||
      (ofRows > 1 && scale.strides[0] < blocks))
    return std::nullopt;
  return BlockScales{true, ofRows > 1 ? scale.strides[0] : blocks};
}

/// Of operands of 8 bits, and what they must be like. Notes where scales of blocks lie.
MatmulScales scalesOf(const CallSite &site, MatmulSpec &spec) {
  using support::DType;
  const auto isEight = [](DType dtype) { return dtype == DType::E4M3 || dtype == DType::E5M2; };
  const DType a = spec.a.dtype, b = spec.b.dtype, c = spec.c.dtype;
  if (!isEight(a) || !isEight(b) || (a == DType::E5M2 && b == DType::E5M2) ||
      (c != DType::F32 && c != DType::BF16 && c != DType::F16))
    site.fail("multiplies {} by {} into {}; expected f8E4M3FN or f8E5M2, not both the latter, into "
              "f32, bf16 or f16",
              support::irName(a), support::irName(b), support::irName(c));
  if ((spec.k != 1 && (spec.a.columnStride != 1 || spec.b.rowStride != 1)) || !spec.batch.empty())
    site.fail(
        "operands of 8 bits lie by columns, or are several; expected one matrix each, whose rows "
        "are what is summed over");
  if (spec.hasBias || spec.gelu || spec.accumulate)
    site.fail("has scales and adds something; expected a plain matmul");
  const TensorShape ofA = site.tensor(spec.scales(), "scale of a"),
                    ofB = site.tensor(spec.scales() + 1, "scale of b");
  const auto isOf = [](const TensorShape &scale, std::vector<int64_t> sizes) {
    return scale.dtype == DType::F32 && scale.sizes == sizes && scale.isDense();
  };
  if (isOf(ofA, {}) && isOf(ofB, {}))
    return MatmulScales::Tensors;
  if (isOf(ofA, {spec.m}) && isOf(ofB, {spec.n}))
    return MatmulScales::Rows;
  const std::optional<BlockScales> blocksOfA = blocksOf(ofA, spec.m, spec.k),
                                   blocksOfB = blocksOf(ofB, spec.n, spec.k);
  if (blocksOfA && blocksOfB && !(blocksOfA->ofManyRows && blocksOfB->ofManyRows)) {
    spec.a.scales = *blocksOfA;
    spec.b.scales = *blocksOfB;
    return MatmulScales::Blocks;
  }
  const int64_t ofM = support::scaleBlocks(spec.m), ofN = support::scaleBlocks(spec.n),
                ofK = support::scaleBlocks(spec.k);
  site.fail("has scales {} {} and {} {}; expected f32: [] both, dense [{}] and [{}], or dense [{}, "
            "{}] and [{}, {}], of which one may be [{}, {}] or [{}, {}]",
            support::irName(ofA.dtype), support::shapeText(ofA.sizes), support::irName(ofB.dtype),
            support::shapeText(ofB.sizes), spec.m, spec.n, ofK, spec.m, ofK, spec.n, ofM, ofK, ofN,
            ofK);
}

/// Of a weight of i8, which only sweeps over few rows multiply.
void checkInt8(const CallSite &site, const MatmulSpec &spec, bool computes) {
  using support::DType;
  const DType a = spec.a.dtype, c = spec.c.dtype;
  if (spec.b.dtype != DType::I8 || (a != DType::F32 && a != DType::BF16 && a != DType::F16) ||
      (c != a && c != DType::F32))
    site.fail("multiplies {} by {}, with a scale of that, into {}; expected f32, bf16 or f16 by "
              "i8, into the first or f32",
              support::irName(a), support::irName(spec.b.dtype), support::irName(c));
  if (!spec.batch.empty() || spec.m > support::kMostInt8Rows ||
      (spec.k != 1 && (spec.b.rowStride != 1 || spec.a.columnStride != 1)))
    site.fail("multiplies {} rows by a weight of i8; expected one matrix of at most {} rows, whose "
              "rows and those of the weight are what is summed over",
              spec.m, support::kMostInt8Rows);
  if (spec.gelu || spec.accumulate || spec.scaled() || computes)
    site.fail("has a weight of i8 and adds or rounds something; expected a matmul with a bias at "
              "most");
  const std::vector<int64_t> sizes =
      spec.packed ? std::vector{spec.n, spec.k / support::kInt4Group} : std::vector{spec.n};
  const TensorShape scale =
      site.tensor(spec.weightScale(), "scale of the weight", static_cast<int>(sizes.size()),
                  spec.packed ? DType::BF16 : DType::F32);
  if (scale.sizes != sizes || !scale.isDense())
    site.fail("the scale of the weight has shape {}; expected a dense {}",
              support::shapeText(scale.sizes), support::shapeText(sizes));
}

/// The tensors that a step multiplies, and c.
struct Operands {
  TensorShape a, b, c;
  bool transposeA, transposeB;

  [[noreturn]] void refuse(const CallSite &site, std::string_view why) const {
    site.fail("{}: a {}{}, b {}{}, c {}", why, support::shapeText(a.sizes),
              transposeA ? " transposed" : "", support::shapeText(b.sizes),
              transposeB ? " transposed" : "", support::shapeText(c.sizes));
  }
  /// Whether all dimensions of x and y but the last two are equal. Both have the rank of x.
  static bool sameBatch(const TensorShape &x, const TensorShape &y) {
    return std::equal(x.sizes.begin(), x.sizes.end() - 2, y.sizes.begin());
  }
};

/// Makes matrices of tensors whose leading dimensions are rows, or are summed over.
void mergeRows(const CallSite &site, Operands &operands) {
  auto &[a, b, c, transposeA, transposeB] = operands;
  if (b.rank() == 2 && a.rank() > 2 && c.rank() == a.rank() && !transposeA) {
    if (!Operands::sameBatch(a, c))
      operands.refuse(site, "leading dimensions differ");
    a = mergeLeading(site, a, "a");
    c = mergeLeading(site, c, "c");
  } else if (c.rank() == 2 && a.rank() > 2 && b.rank() == a.rank() && transposeA && !transposeB) {
    if (!Operands::sameBatch(a, b))
      operands.refuse(site, "leading dimensions differ");
    a = mergeLeading(site, a, "a");
    b = mergeLeading(site, b, "b");
  }
}

/// A weight whose bytes have two numbers each, by its numbers.
void unpackWeight(const CallSite &site, Operands &operands) {
  TensorShape &b = operands.b;
  if (!operands.transposeB || b.rank() != 2 || b.dtype != support::DType::I8 ||
      b.sizes[1] % support::kInt4Bytes != 0 || b.strides[1] != 1)
    operands.refuse(site, "expected a weight of i8 with whole groups in dense rows");
  b.sizes[1] *= 2;
  b.strides[0] *= 2;
}

/// Sizes and strides of what is multiplied.
void describeMatrices(const CallSite &site, Operands operands, MatmulSpec &spec) {
  const auto &[a, b, c, transposeA, transposeB] = operands;
  if (a.rank() < 2 || b.rank() < 2 || c.rank() < 2)
    operands.refuse(site, "expected at least two dimensions");
  if (spec.packed)
    unpackWeight(site, operands);
  mergeRows(site, operands);
  const size_t rank = c.rank();
  if (a.rank() != rank || b.rank() != rank)
    operands.refuse(site, "no combination of ranks that this function knows");
  if (!Operands::sameBatch(c, a) || !Operands::sameBatch(c, b))
    operands.refuse(site, "leading dimensions differ");
  spec.batch.assign(c.sizes.begin(), c.sizes.end() - 2);
  spec.m = c.sizes[rank - 2];
  spec.n = c.sizes[rank - 1];
  spec.k = a.sizes[rank - (transposeA ? 2 : 1)];
  if (a.sizes[rank - (transposeA ? 1 : 2)] != spec.m ||
      b.sizes[rank - (transposeB ? 1 : 2)] != spec.k ||
      b.sizes[rank - (transposeB ? 2 : 1)] != spec.n)
    operands.refuse(site, "sizes do not fit");
  spec.a = operand(a, transposeA);
  spec.b = operand(b, transposeB);
  spec.c = operand(c, false);
  checkMatrix(site, spec.a, spec.m, spec.k, "a");
  checkMatrix(site, spec.b, spec.k, spec.n, "b");
  checkMatrix(site, spec.c, spec.m, spec.n, "c");
}

/// Number formats of the operands, of their scales and of what they are rounded to.
void describeFormats(const CallSite &site, MatmulSpec &spec) {
  using support::DType;
  const planfile::DType compute = site.as<planfile::Matmul>().compute();
  const bool computes = compute != planfile::DType::f32;
  const DType a = spec.a.dtype, b = spec.b.dtype, c = spec.c.dtype;
  if (spec.hasWeightScale)
    checkInt8(site, spec, computes);
  else if (spec.scaled())
    spec.scaling = scalesOf(site, spec);
  else if ((a != DType::F32 && a != DType::BF16 && a != DType::F16) || a != b ||
           (c != a && c != DType::F32))
    site.fail(
        "multiplies {} by {} into {}; expected f32, bf16 or f16, both alike, into that or f32",
        support::irName(a), support::irName(b), support::irName(c));
  spec.tf32 = compute == planfile::DType::tf32;
  if (computes && (!spec.tf32 || a != DType::F32))
    site.fail("multiplies {} in format {}; expected f32 or, of f32, tf32", support::irName(a),
              static_cast<int>(compute));
}

void checkSums(const CallSite &site, const MatmulSpec &spec) {
  const TensorShape sums = site.tensor(spec.result() + 1, "sums"),
                    c = site.tensor(spec.result(), "c");
  if (!spec.gelu || sums.sizes != c.sizes || sums.strides != c.strides || sums.dtype != c.dtype)
    site.fail("the sums have shape {}; expected them with gelu, laid out as the result {}",
              support::shapeText(sums.sizes), support::shapeText(c.sizes));
}

void checkBias(const CallSite &site, const MatmulSpec &spec) {
  const TensorShape bias = site.tensor(2, "bias", 1, spec.c.dtype);
  if (bias.sizes[0] != spec.n || !bias.isDense())
    site.fail("the bias has shape {}; expected a dense [{}]", support::shapeText(bias.sizes),
              spec.n);
}

} // namespace

MatmulSpec hydra::runtime::describeMatmul(const CallSite &site) {
  const auto &call = site.as<planfile::Matmul>();
  MatmulSpec spec;
  spec.hasBias = call.bias();
  spec.hasWeightScale = call.weight_scale();
  if (call.scaled())
    spec.scaling = MatmulScales::Tensors; // until describeFormats has found of which kind they are
  spec.accumulate = call.accumulate();
  spec.gelu = call.gelu();
  spec.savesSums = call.saves_sums();
  const size_t count = spec.result() + (spec.savesSums ? 2 : 1);
  site.argumentCount(count, count);
  if (spec.hasWeightScale) {
    const TensorShape scale = site.tensor(spec.weightScale(), "scale of the weight");
    spec.packed = scale.rank() == 2 && scale.dtype == support::DType::BF16;
  }
  describeMatrices(site,
                   {site.tensor(0, "a"), site.tensor(1, "b"), site.tensor(spec.result(), "c"),
                    call.transpose_a(), call.transpose_b()},
                   spec);
  describeFormats(site, spec);
  if (spec.savesSums)
    checkSums(site, spec);
  if (spec.hasBias)
    checkBias(site, spec);
  return spec;
}
