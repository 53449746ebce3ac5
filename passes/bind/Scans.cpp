// Scans are written out while they are bound.
#include "passes/bind/Scans.h"

#include "dialects/hydra/Build.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hydra {

/// Far beyond any model: scans in scans multiply.
static constexpr int64_t kMostScanned = 1'000'000;

static Value slice(OpBuilder &b, Value v, int64_t axis, int64_t start, int64_t rows) {
  return SliceOp::create(b, v.getLoc(), v, b.getI64IntegerAttr(axis), b.getI64IntegerAttr(start),
                         b.getI64IntegerAttr(rows));
}

/// The length of sequences along an axis that must be a number and one of theirs.
static FailureOr<int64_t> commonLength(Operation *scan, Attribute axisAttr, ValueRange sequences) {
  auto number = dyn_cast<IntegerAttr>(axisAttr);
  if (!number)
    return scan->emitOpError("has an axis that is no number");
  const int64_t axis = number.getInt();
  std::optional<int64_t> length;
  for (Value sequence : sequences) {
    ArrayRef<int64_t> shape = build::shapeOf(sequence);
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
      return scan->emitOpError() << "has axis " << axis << " but walks over a tensor of "
                                 << shapeText(shape);
    if (length && *length != shape[axis])
      return scan->emitOpError() << "walks over sequences of " << *length << " and " << shape[axis]
                                 << " rows";
    length = shape[axis];
  }
  return *length;
}

/// The length of a scan's sequences.
static FailureOr<int64_t> checkScan(ScanOp scan) {
  if (!isIntOrExpr(scan.getChunkAttr()) || isa<ExprAttr>(scan.getChunkAttr()) ||
      scan.getChunk() < 1)
    return scan.emitOpError("has a chunk that is no positive number");
  FailureOr<int64_t> length = commonLength(scan, scan.getAxisAttr(), scan.getSequences());
  if (failed(length))
    return failure();
  constexpr int64_t kMostChunks = 65536;
  if ((*length + scan.getChunk() - 1) / scan.getChunk() > kMostChunks)
    return scan.emitOpError() << "has more than " << kMostChunks << " chunks";
  return length;
}

LogicalResult ScanWriter::writeOut(Operation *scan) {
  if (auto chunks = dyn_cast<ScanOp>(scan))
    return write(chunks);
  return write(cast<PrefixScanOp>(scan));
}

LogicalResult ScanWriter::write(ScanOp scan) {
  FailureOr<int64_t> length = checkScan(scan);
  if (failed(length))
    return failure();
  const int64_t axis = scan.getAxis(), chunk = scan.getChunk();
  const size_t sequences = scan.getSequences().size();
  SmallVector<Value> carried(scan.getInits());
  std::vector<SmallVector<Value>> parts(scan.stackedCount());
  OpBuilder b(scan);
  for (int64_t start = 0; start < *length; start += chunk) {
    const int64_t rows = std::min(chunk, *length - start);
    IRMapping mapping;
    for (auto [argument, sequence] : llvm::zip(scan.getBody().getArguments(), scan.getSequences()))
      mapping.map(argument, slice(b, sequence, axis, start, rows));
    mapping.map(scan.getBody().getArguments().drop_front(sequences), carried);
    FailureOr<SmallVector<Value>> yielded = writeBody(scan, mapping, rows);
    if (failed(yielded))
      return failure();
    for (auto [list, value] : llvm::zip(parts, *yielded))
      list.push_back(value);
    for (auto [i, before, after] :
         llvm::enumerate(carried, ArrayRef(*yielded).drop_front(parts.size()))) {
      if (before.getType() != after.getType())
        return scan.emitOpError() << "carried value " << i << " changes type from "
                                  << before.getType() << " to " << after.getType();
      before = after;
    }
  }
  return replace(scan, parts, carried);
}

LogicalResult ScanWriter::write(PrefixScanOp scan) {
  FailureOr<int64_t> length = commonLength(scan, scan.getAxisAttr(), scan.getSequences());
  if (failed(length))
    return failure();
  const int64_t axis = scan.getAxis();
  const size_t sequences = scan.getNumOperands();
  SmallVector<Value> values(scan.getSequences());
  OpBuilder b(scan);
  for (int64_t distance = 1; distance < *length; distance *= 2) {
    const int64_t rows = *length - distance;
    IRMapping mapping;
    for (auto [i, value] : llvm::enumerate(values)) {
      mapping.map(scan.getBody().getArgument(i), slice(b, value, axis, 0, rows));
      mapping.map(scan.getBody().getArgument(sequences + i), slice(b, value, axis, distance, rows));
    }
    FailureOr<SmallVector<Value>> combined = writeBody(scan, mapping, rows);
    if (failed(combined))
      return failure();
    for (auto [i, value, later] : llvm::enumerate(values, *combined)) {
      if (later.getType() != mapping.lookup(scan.getBody().getArgument(i)).getType())
        return scan.emitOpError() << "combines values of type "
                                  << mapping.lookup(scan.getBody().getArgument(i)).getType()
                                  << " to " << later.getType();
      value = ConcatOp::create(b, scan.getLoc(), value.getType(),
                               ValueRange{slice(b, value, axis, 0, distance), later},
                               b.getI64IntegerAttr(axis));
    }
  }
  scan.replaceAllUsesWith(values);
  scan.erase();
  return success();
}

FailureOr<SmallVector<Value>> ScanWriter::writeBody(Operation *scan, IRMapping &mapping,
                                                    int64_t rows) {
  OpBuilder b(scan);
  const Attribute outerRows = environment.values.lookup(kRowsSymbol);
  environment.values[kRowsSymbol] = b.getI64IntegerAttr(rows);
  Operation *before = scan->getPrevNode();
  Operation *yield = nullptr; // a copy too: binding may replace what it yields
  for (Operation &op : scan->getRegion(0).front()) {
    if (++scanned > kMostScanned)
      return scan->emitOpError() << "is one of those that write more than " << kMostScanned
                                 << " operations";
    yield = b.clone(op, mapping);
  }
  if (failed(bind(before ? std::next(before->getIterator()) : scan->getBlock()->begin(),
                  yield->getIterator())))
    return failure();
  SmallVector<Value> yielded(yield->getOperands());
  yield->erase();
  if (outerRows)
    environment.values[kRowsSymbol] = outerRows;
  else
    environment.values.erase(kRowsSymbol);
  return yielded;
}

LogicalResult ScanWriter::replace(ScanOp scan, ArrayRef<SmallVector<Value>> parts,
                                  ArrayRef<Value> carried) {
  OpBuilder b(scan);
  for (auto [result, list] : llvm::zip(scan.getResults(), parts)) {
    Value whole = list.front();
    if (list.size() > 1) {
      int64_t rank = build::shapeOf(whole).size();
      if (scan.getAxis() >= rank)
        return scan.emitOpError() << "yields chunks of rank " << rank << ", which have no axis "
                                  << scan.getAxis();
      auto join = ConcatOp::create(b, scan.getLoc(), AnyType::get(scan.getContext()), list,
                                   b.getI64IntegerAttr(scan.getAxis()));
      if (failed(bind(join->getIterator(), std::next(join->getIterator()))))
        return failure();
      whole = join;
    }
    result.replaceAllUsesWith(whole);
  }
  for (auto [result, value] : llvm::zip(scan.getResults().drop_front(parts.size()), carried))
    result.replaceAllUsesWith(value);
  scan.erase();
  return success();
}

} // namespace hydra
