// What ranks exchange, and which of them one is.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Reference.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hydra {

//===-- The mesh ----------------------------------------------------------------------------===//

/// Between the names of axes that are taken as one.
static constexpr char kAxisSeparator = '*';

/// Whether flags and reports can give the name as it is.
static bool isAxisName(StringRef name) {
  return llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; });
}

LogicalResult MeshAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> axes, ArrayRef<int64_t> sizes) {
  if (axes.empty() || axes.size() != sizes.size())
    return emitError() << "a mesh has " << axes.size() << " axes and " << sizes.size()
                       << " sizes; expected as many, and at least one";
  constexpr int64_t kMostRanks = 65536;
  int64_t ranks = 1;
  StringSet<> names;
  for (auto [axis, size] : llvm::zip(axes, sizes)) {
    if (axis.getValue().empty() || !names.insert(axis.getValue()).second)
      return emitError() << "an axis of a mesh needs a name of its own; found '" << axis.getValue()
                         << "'";
    if (axis.getValue().contains(kAxisSeparator))
      return emitError() << "axis '" << axis.getValue() << "' of a mesh has a '" << kAxisSeparator
                         << "' in its name, which stands between names";
    if (!isAxisName(axis.getValue()))
      return emitError() << "axis '" << axis.getValue()
                         << "' of a mesh: expected a name of letters, digits, '_', '-' and '.'";
    if (size < 1 || size > kMostRanks || (ranks *= size) > kMostRanks)
      return emitError() << "axis '" << axis.getValue() << "' of the mesh has " << size
                         << " ranks; expected 1 to " << kMostRanks << " in all";
  }
  return success();
}

int64_t MeshAttr::ranks() const { return productOf(getSizes()); }

SmallVector<StringRef, 2> MeshAttr::axesOf(StringRef over) {
  SmallVector<StringRef, 2> axes;
  over.split(axes, kAxisSeparator);
  return axes;
}

std::string MeshAttr::joined(ArrayRef<StringRef> axes) {
  return llvm::join(axes, StringRef(&kAxisSeparator, 1));
}

int64_t MeshAttr::size(StringRef over) const {
  const SmallVector<StringRef, 2> names = axesOf(over);
  int64_t product = 1;
  for (auto [i, name] : llvm::enumerate(names)) {
    const auto *axis =
        llvm::find_if(getAxes(), [&](StringAttr each) { return each.getValue() == name; });
    if (axis == getAxes().end() || llvm::is_contained(ArrayRef(names).take_front(i), name))
      return 0;
    product *= getSizes()[axis - getAxes().begin()];
  }
  return product;
}

int64_t MeshAttr::stride(StringRef axis) const {
  int64_t stride = 1;
  for (auto [name, size] : llvm::reverse(llvm::zip_equal(getAxes(), getSizes()))) {
    if (name.getValue() == axis)
      break;
    stride *= size;
  }
  return stride;
}

int64_t MeshAttr::coordinate(StringRef over, int64_t rank) const {
  int64_t coordinate = 0;
  for (StringRef axis : axesOf(over))
    coordinate = coordinate * size(axis) + rank / stride(axis) % size(axis);
  return coordinate;
}

int64_t MeshAttr::distance(StringRef over, int64_t coordinate) const {
  int64_t distance = 0;
  for (StringRef axis : llvm::reverse(axesOf(over))) {
    distance += coordinate % size(axis) * stride(axis);
    coordinate /= size(axis);
  }
  return distance;
}

//===-- Checks ------------------------------------------------------------------------------===//

/// Whether the model's mesh has the axis, or all of several, with as many ranks.
static LogicalResult verifyAxis(CollectiveOpInterface op) {
  std::optional<MeshAttr> mesh = op->getParentOfType<ModelOp>().getMesh();
  if (!mesh)
    return op->emitOpError() << "goes over '" << op.getOver() << "', but the model has no mesh";
  const int64_t size = mesh->size(op.getOver());
  if (size == 0)
    return op->emitOpError() << "goes over '" << op.getOver()
                             << "', which is no axis of the model's mesh";
  if (size != op.getRanks())
    return op->emitOpError() << "goes over " << op.getRanks() << " ranks; axis '" << op.getOver()
                             << "' of the mesh has " << size;
  return success();
}

/// Whether ranks can meet here: in a program. Over several axes goes what has the same result as
/// one collective after the other: sums have an order, and pieces a place, along each axis.
static LogicalResult verifyPlace(CollectiveOpInterface op) {
  auto entry = dyn_cast<EntryOp>(op->getParentOp());
  if (!entry || !entry.isProgram())
    return op->emitOpError("stands in a loop or a region; ranks meet in programs only");
  if (!isa<AllGatherOp>(op) && MeshAttr::axesOf(op.getOver()).size() > 1)
    return op->emitOpError() << "goes over '" << op.getOver()
                             << "', several axes at once; expected one after the other";
  return verifyAxis(op);
}

template <typename Op>
static LogicalResult inferPieces(TypeInference &infer, typename Op::Adaptor op,
                                 SmallVector<int64_t> &shape) {
  shape = SmallVector<int64_t>(infer.shape(op.getX()));
  int64_t axis = op.getAxis();
  if (axis < 0 || failed(infer.wantAxis(axis, shape.size())))
    return axis < 0 ? infer.fail("axis " + Twine(axis) + " is negative") : failure();
  return success();
}

static LogicalResult wantRanks(TypeInference &infer, int64_t ranks) {
  return ranks >= 1 ? success()
                    : infer.fail("goes over " + Twine(ranks) + " ranks; expected at least 1");
}

static LogicalResult wantEqualPieces(TypeInference &infer, ArrayRef<int64_t> shape, int64_t axis,
                                     int64_t ranks) {
  if (shape[axis] % ranks == 0)
    return success();
  return infer.fail("cannot cut axis " + Twine(axis) + " of " + shapeText(shape) + " into " +
                    Twine(ranks) + " equal pieces");
}

/// Sums over ranks are f32; what only moves may have been rounded.
#define COLLECTIVE_OP(Op, precision, mayBeRounded, adds)                                           \
  LogicalResult Op::verify() { return verifyPlace(*this); }                                        \
  int64_t Op::flops() { return adds; }                                                             \
  OpClass Op::costClass() { return OpClass::collective; }                                          \
  Precision Op::precisionClass() { return Precision::precision; }                                  \
  bool Op::takesRounded(unsigned) { return mayBeRounded; }                                         \
  LogicalResult Op::evaluate(ArrayRef<const RefTensor *>, MutableArrayRef<RefTensor>) {            \
    return emitOpError("needs the values of all ranks");                                           \
  }

COLLECTIVE_OP(AllGatherOp, Move, true, 0)
COLLECTIVE_OP(AllToAllOp, Exact, true, 0)
COLLECTIVE_OP(AllReduceOp, Exact, getSum().has_value(),
              productOf({getRanks() - (getStart() ? 0 : 1),
                         build::typeOf(getX()).getNumElements()}))
COLLECTIVE_OP(ReduceScatterOp, Exact, getSum().has_value(),
              productOf({getRanks() - (getStart() ? 0 : 1),
                         build::typeOf(getY()).getNumElements()}))
#undef COLLECTIVE_OP

//===-- Evaluation --------------------------------------------------------------------------===//

using RankOperands = ArrayRef<SmallVector<const RefTensor *>>;

/// The sum in the order of ranks, from `start` if there is one.
static RefTensor sumOfRanks(RankOperands in, const RefTensor *start) {
  RefTensor sum = start ? *start : *in[0][0];
  for (size_t rank = start ? 0 : 1; rank < in.size(); ++rank)
    for (auto [to, v] : llvm::zip(sum.data, in[rank][0]->data))
      to += v;
  return sum;
}

void AllGatherOp::evaluateOverRanks(RankOperands in, MutableArrayRef<RefTensor> out) {
  for (RefTensor &whole : out)
    for (auto [rank, operands] : llvm::enumerate(in))
      putPiece(whole, *operands[0], getAxis(), rank * operands[0]->shape[getAxis()]);
}

void AllToAllOp::evaluateOverRanks(RankOperands in, MutableArrayRef<RefTensor> out) {
  SmallVector<int64_t> shape = out[0].shape;
  shape[getAxis()] /= getRanks();
  RefTensor piece(shape);
  for (auto [to, whole] : llvm::enumerate(out))
    for (auto [from, operands] : llvm::enumerate(in)) {
      takePiece(*operands[0], piece, getAxis(), to * shape[getAxis()]);
      putPiece(whole, piece, getAxis(), from * shape[getAxis()]);
    }
}

void AllReduceOp::evaluateOverRanks(RankOperands in, MutableArrayRef<RefTensor> out) {
  for (auto [operands, result] : llvm::zip(in, out))
    result = sumOfRanks(in, getStart() ? operands[1] : nullptr);
}

void ReduceScatterOp::evaluateOverRanks(RankOperands in, MutableArrayRef<RefTensor> out) {
  const RefTensor sum = sumOfRanks(in, nullptr);
  for (auto [rank, piece] : llvm::enumerate(out))
    takePiece(sum, piece, getAxis(), rank * piece.shape[getAxis()]);
  if (!getStart())
    return;
  for (auto [rank, piece] : llvm::enumerate(out)) {
    RefTensor from = piece;
    piece = *in[rank][1];
    for (const SmallVector<const RefTensor *> &operands : in) {
      takePiece(*operands[0], from, getAxis(), rank * piece.shape[getAxis()]);
      for (auto [to, v] : llvm::zip(piece.data, from.data))
        to += v;
    }
  }
}

//===-- all_gather --------------------------------------------------------------------------===//

LogicalResult AllGatherOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape;
  if (failed(inferPieces<AllGatherOp>(infer, op, shape)) || failed(wantRanks(infer, op.getRanks())))
    return failure();
  shape[op.getAxis()] = productOf({shape[op.getAxis()], op.getRanks()});
  if (failed(infer.wantPossible(shape, "what is gathered,")))
    return failure();
  types.push_back(infer.tensor(shape, infer.element(op.getX())));
  return success();
}

int64_t AllGatherOp::wireBytes() { return productOf({getRanks() - 1, bytesOf(getX().getType())}); }

void AllGatherOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  // Those named first have cut the larger pieces.
  const MeshAttr mesh = *getOperation()->getParentOfType<ModelOp>().getMesh();
  grads[0] = g[0];
  for (StringRef axis : MeshAttr::axesOf(getOver()))
    grads[0] = ReduceScatterOp::create(b, getLoc(), grads[0], Value(), getAxisAttr(),
                                       b.getStringAttr(axis), b.getI64IntegerAttr(mesh.size(axis)),
                                       TypeAttr());
}

//===-- all_to_all --------------------------------------------------------------------------===//

LogicalResult AllToAllOp::inferTypes(TypeInference &infer, Adaptor op,
                                     SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape;
  if (failed(inferPieces<AllToAllOp>(infer, op, shape)) ||
      failed(wantRanks(infer, op.getRanks())) ||
      failed(wantEqualPieces(infer, shape, op.getAxis(), op.getRanks())))
    return failure();
  types.push_back(op.getX().getType());
  return success();
}

int64_t AllToAllOp::wireBytes() {
  return bytesOf(getX().getType()) / getRanks() * (getRanks() - 1);
}

void AllToAllOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = AllToAllOp::create(b, getLoc(), g[0], getAxisAttr(), getOverAttr(), getRanksAttr(),
                                getNumberAttr());
}

//===-- all_reduce --------------------------------------------------------------------------===//

/// A sum of values of ranks, of that shape: its type and that of what it begins with.
static LogicalResult inferSum(TypeInference &infer, Type element, TypeAttr sum, Value start,
                              ArrayRef<int64_t> shape, SmallVectorImpl<Type> &types) {
  if (element.isInteger(1))
    return infer.fail("cannot add truth values (i1)");
  if (sum && !(sum.getValue().isF32() && isNarrowFloat(element)))
    return infer.fail("cannot add up in this type; expected sum = f32, of operands in bf16 or f16");
  element = sum ? sum.getValue() : element;
  types.push_back(infer.tensor(shape, element));
  if (!start)
    return success();
  if (infer.element(start) != element)
    return infer.fail("start has another element type than the sum");
  return infer.wantShape(start, "start", shape);
}

LogicalResult AllReduceOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  if (failed(wantRanks(infer, op.getRanks())))
    return failure();
  return inferSum(infer, infer.element(op.getX()), op.getSumAttr(), op.getStart(),
                  infer.shape(op.getX()), types);
}

int64_t AllReduceOp::wireBytes() {
  // Every rank sends the pieces that others sum up, and the sums of its own.
  const int64_t bytes = bytesOf(getX().getType()) + bytesOf(getY().getType());
  return productOf({bytes / getRanks(), getRanks() - 1});
}

void AllReduceOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = build::cast(
      b, getLoc(),
      AllReduceOp::create(b, getLoc(), g[0], Value(), getOverAttr(), getRanksAttr(), TypeAttr()),
      build::typeOf(getX()).getElementType());
  if (getStart()) // every rank adds its own copy
    grads[1] = g[0];
}

//===-- reduce_scatter ----------------------------------------------------------------------===//

LogicalResult ReduceScatterOp::inferTypes(TypeInference &infer, Adaptor op,
                                          SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape;
  if (failed(inferPieces<ReduceScatterOp>(infer, op, shape)) ||
      failed(wantRanks(infer, op.getRanks())) ||
      failed(wantEqualPieces(infer, shape, op.getAxis(), op.getRanks())))
    return failure();
  shape[op.getAxis()] /= op.getRanks();
  return inferSum(infer, infer.element(op.getX()), op.getSumAttr(), op.getStart(), shape, types);
}

int64_t ReduceScatterOp::wireBytes() {
  return productOf({getRanks() - 1, bytesOf(getX().getType()) / getRanks()});
}

void ReduceScatterOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = build::cast(b, getLoc(),
                         AllGatherOp::create(b, getLoc(), g[0], getAxisAttr(), getOverAttr(),
                                             getRanksAttr(), b.getI64IntegerAttr(0)),
                         build::typeOf(getX()).getElementType());
  if (getStart())
    grads[1] = g[0];
}

//===-- shard -------------------------------------------------------------------------------===//

LogicalResult ShardOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (infer.shape(op.getX()).empty())
    return infer.fail("cannot cut a number into rows");
  types.push_back(op.getX().getType());
  return success();
}

LogicalResult ShardOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  out[0].data = in[0]->data;
  return success();
}

//===-- rank --------------------------------------------------------------------------------===//

/// In a loop too: ranks do not meet for it.
LogicalResult RankOp::verify() { return isUnbound(getType()) ? success() : verifyAxis(*this); }

FailureOr<RankedTensorType> RankOp::boundType() {
  return RankedTensorType::get({}, IntegerType::get(getContext(), 32));
}

LogicalResult RankOp::evaluate(ArrayRef<const RefTensor *>, MutableArrayRef<RefTensor>) {
  return emitOpError("needs to be told its rank");
}

int64_t RankOp::wireBytes() { return 0; }

void RankOp::evaluateOverRanks(RankOperands, MutableArrayRef<RefTensor> out) {
  for (auto [rank, result] : llvm::enumerate(out))
    result.data[0] = static_cast<double>(rank);
}

} // namespace hydra
