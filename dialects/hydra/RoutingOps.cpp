// Which rows are active, and gathering them.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

using namespace mlir;

namespace hydra {

/// Of numbers [N] or [N, k]: k.
static int64_t numbersOfRow(Value index) {
  return build::typeOf(index).getRank() == 2 ? build::shapeOf(index)[1] : 1;
}

OpClass TopKOp::costClass() { return OpClass::gather_scatter; }
OpClass CompactOp::costClass() { return OpClass::gather_scatter; }
OpClass RouteOp::costClass() { return OpClass::gather_scatter; }
OpClass TakeRowsOp::costClass() { return OpClass::gather_scatter; }
Precision TopKOp::precisionClass() { return Precision::Exact; }
Precision CompactOp::precisionClass() { return Precision::Exact; }
Precision RouteOp::precisionClass() { return Precision::Exact; }
Precision TakeRowsOp::precisionClass() {
  return numbersOfRow(getIndex()) > 1 ? Precision::Follow : Precision::Move;
}
int64_t TopKOp::flops() {
  return productOf({build::typeOf(getU()).getNumElements(), build::shapeOf(getU()).back()});
}
int64_t CompactOp::flops() { return build::typeOf(getMask()).getNumElements(); }
int64_t RouteOp::flops() { return build::typeOf(getMask()).getNumElements(); }
int64_t TakeRowsOp::flops() {
  return productOf({build::typeOf(getY()).getNumElements(), numbersOfRow(getIndex()) - 1});
}

//===-- top_k -------------------------------------------------------------------------------===//

LogicalResult TopKOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (failed(infer.wantFloat(op.getU(), "operand")))
    return failure();
  ArrayRef<int64_t> shape = infer.shape(op.getU());
  if (shape.empty())
    return infer.fail("operand is a scalar; expected [..., S]");
  if (op.getK() < 1 || op.getK() > shape.back())
    return infer.fail("cannot choose " + Twine(op.getK()) + " of " + Twine(shape.back()) +
                      " elements");
  SmallVector<int64_t> pairs{RefTensor::elements(shape.drop_back()), shape.back(), shape.back()};
  if (failed(infer.wantPossible(pairs, "the comparison of all pairs,")))
    return failure();
  types.push_back(infer.tensor(shape, IntegerType::get(infer.context, 1)));
  return success();
}

LogicalResult TopKOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  int64_t width = in[0]->cols();
  for (int64_t row = 0; row < in[0]->rows(); ++row) {
    const double *u = in[0]->data.data() + row * width;
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < width; ++i)
      if (std::isnan(u[i])) // nothing is larger
        out[0].data[row * width + i] = 1.0;
      else
        order.push_back(i);
    llvm::stable_sort(order, [&](int64_t a, int64_t b) { return u[a] > u[b]; });
    for (int64_t chosen : ArrayRef(order).take_front(getK()))
      out[0].data[row * width + chosen] = 1.0;
  }
  return success();
}

/// An element is chosen when less than k of its row come before it: are larger, or the same at a
/// lower index.
SmallVector<Value> TopKOp::buildRowWiseForm(OpBuilder &b) {
  Location loc = getLoc();
  Value u = build::flattenRows(b, loc, getU());
  int64_t rows = build::shapeOf(u)[0], width = build::shapeOf(u)[1];
  SmallVector<int64_t> pairs{rows, width, width};
  Value own = build::broadcast(b, loc, build::reshape(b, loc, u, {rows, width, 1}), pairs);
  Value other = build::broadcast(b, loc, build::reshape(b, loc, u, {rows, 1, width}), pairs);
  auto number = [&](int64_t axis) -> Value {
    return IotaOp::create(b, loc, RankedTensorType::get(pairs, b.getI32Type()),
                          b.getI64ArrayAttr(pairs), b.getI64IntegerAttr(axis), TypeAttr());
  };
  auto holds = [&](Value x, Value y, Predicate is) {
    Value truth = CompareOp::create(b, loc, x, y, is);
    return build::cast(b, loc, truth, b.getF32Type());
  };
  Value tie = MulOp::create(b, loc, holds(other, own, Predicate::eq),
                            holds(number(2), number(1), Predicate::lt));
  Value before = AddOp::create(b, loc, holds(other, own, Predicate::gt), tie);
  Value rank = build::sum(b, loc, before, {2});
  Value k = build::constant(b, loc, rank.getType(), getK());
  Value chosen = CompareOp::create(b, loc, rank, k, Predicate::lt);
  return {build::reshape(b, loc, chosen, build::shapeOf(getU()))};
}

//===-- compact -----------------------------------------------------------------------------===//

LogicalResult CompactOp::inferTypes(TypeInference &infer, Adaptor op,
                                    SmallVectorImpl<Type> &types) {
  if (failed(infer.wantRank(op.getMask(), "mask", 1)))
    return failure();
  if (!infer.element(op.getMask()).isInteger(1))
    return infer.fail("mask holds no truth values (i1)");
  if (infer.shape(op.getMask())[0] > std::numeric_limits<int32_t>::max())
    return infer.fail("mask has " + Twine(infer.shape(op.getMask())[0]) +
                      " rows; expected numbers of i32");
  Type number = IntegerType::get(infer.context, 32);
  types.append(2, infer.tensor(infer.shape(op.getMask()), number));
  types.push_back(infer.tensor({}, number));
  return success();
}

LogicalResult CompactOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  std::fill(out[0].data.begin(), out[0].data.end(), -1.0);
  std::fill(out[1].data.begin(), out[1].data.end(), -1.0);
  int64_t count = 0;
  for (int64_t i = 0; i < in[0]->size(); ++i)
    if (in[0]->data[i] != 0.0) {
      out[0].data[count] = i;
      out[1].data[i] = count++;
    }
  out[2].data[0] = count;
  return success();
}

//===-- route -------------------------------------------------------------------------------===//

LogicalResult RouteOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (failed(infer.wantRank(op.getMask(), "mask", 2)))
    return failure();
  if (!infer.element(op.getMask()).isInteger(1))
    return infer.fail("mask holds no truth values (i1)");
  const int64_t rows = infer.shape(op.getMask())[0], groups = infer.shape(op.getMask())[1];
  if (op.getK() < 1 || op.getK() > groups)
    return infer.fail("rows are in " + Twine(op.getK()) + " of " + Twine(groups) + " groups");
  const int64_t sorted = productOf({rows, op.getK()});
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (sorted > kMost || groups >= kMost)
    return infer.fail("sorts " + Twine(sorted) + " rows into " + Twine(groups) +
                      " groups; expected numbers of i32");
  Type number = IntegerType::get(infer.context, 32);
  types.append(2, infer.tensor({sorted}, number));
  types.push_back(infer.tensor({rows, op.getK()}, number));
  types.push_back(infer.tensor({groups + 1}, number));
  return success();
}

LogicalResult RouteOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const int64_t rows = in[0]->rows(), groups = in[0]->cols(), k = getK();
  std::vector<double> &index = out[0].data, &group = out[1].data, &place = out[2].data;
  llvm::fill(index, -1.0);
  llvm::fill(place, -1.0);
  std::vector<int64_t> taken(rows); // of each row so far
  int64_t sorted = 0;
  for (int64_t e = 0; e < groups; ++e) {
    out[3].data[e] = sorted;
    for (int64_t t = 0; t < rows; ++t) {
      if (in[0]->data[t * groups + e] == 0.0 || taken[t] == k)
        continue;
      index[sorted] = t;
      group[sorted] = e;
      place[t * k + taken[t]++] = sorted++;
    }
  }
  out[3].data[groups] = sorted;
  return success();
}

//===-- take_rows ---------------------------------------------------------------------------===//

LogicalResult TakeRowsOp::inferTypes(TypeInference &infer, Adaptor op,
                                     SmallVectorImpl<Type> &types) {
  if (failed(infer.wantFloat(op.getX(), "operand")) ||
      failed(infer.wantRank(op.getX(), "operand", 2)))
    return failure();
  for (auto [numbers, name] :
       {std::pair(op.getIndex(), "index"), std::pair(op.getPlace(), "place")}) {
    if (failed(infer.wantInteger(numbers, name)))
      return failure();
    const size_t rank = infer.shape(numbers).size();
    if (rank != 1 && rank != 2)
      return infer.fail(Twine(name) + " is " + shapeText(infer.shape(numbers)) +
                        "; expected a number for each row, or several");
  }
  SmallVector<int64_t> places(infer.shape(op.getPlace()));
  places[0] = infer.shape(op.getX())[0];
  if (failed(infer.wantShape(op.getPlace(), "place", places)))
    return failure();
  types.push_back(infer.tensor({infer.shape(op.getIndex())[0], infer.shape(op.getX())[1]},
                               infer.element(op.getX())));
  return success();
}

LogicalResult TakeRowsOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const int64_t width = in[0]->cols(), each = in[1]->size() / in[1]->shape[0];
  for (int64_t i = 0; i < in[1]->size(); ++i) {
    double from = in[1]->data[i];
    if (from < 0)
      continue;
    if (from >= in[0]->rows())
      return emitOpError() << "row " << static_cast<int64_t>(from) << " is not in [0, "
                           << in[0]->rows() << ")";
    const double *row = in[0]->data.data() + static_cast<int64_t>(from) * width;
    for (int64_t c = 0; c < width; ++c)
      out[0].data[i / each * width + c] += row[c];
  }
  return success();
}

SmallVector<int64_t> TakeRowsOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getY()));
}
std::optional<unsigned> TakeRowsOp::rowDimensions() { return 1; }
RowForm TakeRowsOp::operandForm(unsigned operand) {
  return operand == 0 ? RowForm::Tile : RowForm::Row;
}
bool TakeRowsOp::needsOuterOperand(unsigned operand) { return operand == 0; }
/// Where there are as many rows as places, each with one number, all operands are rows of one
/// domain.
bool TakeRowsOp::isRowWise() {
  return build::typeOf(getIndex()).getRank() == 1 && getIndex().getType() == getPlace().getType();
}
bool TakeRowsOp::needsRowWiseForm() { return !isRowWise(); }

void TakeRowsOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned> outer,
                          MutableArrayRef<RowValue> out) {
  Type number = IntegerType::get(getContext(), 32);
  RowValue none = e.constant(0.0, number);
  RowValue row =
      gatherChecked(e, outer[0], e.binary(RowBinary::Max, in[1], none), build::shapeOf(getX())[0]);
  RowValue zero = e.constant(0.0, e.elementType(row));
  out[0] = e.select(e.compare(Predicate::ge, in[1], none), row, zero);
}

/// Lookups in x as a table, one for each column of numbers, which are added.
SmallVector<Value> TakeRowsOp::buildRowWiseForm(OpBuilder &b) {
  Location loc = getLoc();
  const RankedTensorType type = build::typeOf(getY());
  const int64_t rows = type.getDimSize(0), each = numbersOfRow(getIndex());
  Value numbers = build::reshape(b, loc, getIndex(), {rows, each}), sum;
  for (int64_t i = 0; i < each; ++i) {
    Value column = numbers;
    if (each > 1)
      column = SliceOp::create(b, loc, numbers, b.getI64IntegerAttr(1), b.getI64IntegerAttr(i),
                               b.getI64IntegerAttr(1));
    column = build::reshape(b, loc, column, {rows});
    Value none = build::constant(b, loc, column.getType(), 0.0);
    Value row = EmbeddingOp::create(b, loc, MaxOp::create(b, loc, column, none), getX());
    if (each > 1)
      row = build::cast(b, loc, row, b.getF32Type());
    Value is = CompareOp::create(b, loc, column, none, Predicate::ge);
    is = build::broadcast(b, loc, build::reshape(b, loc, is, {rows, 1}), type.getShape());
    row = SelectOp::create(b, loc, is, row, build::constant(b, loc, row.getType(), 0.0));
    sum = sum ? AddOp::create(b, loc, sum, row).getResult() : row;
  }
  return {build::cast(b, loc, sum, type.getElementType())};
}

void TakeRowsOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = TakeRowsOp::create(b, getLoc(), g[0], getPlace(), getIndex());
}

} // namespace hydra
