// Scans become loops, or are written out, while they are bound.
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

static LogicalResult tooMany(Operation *scan) {
  return scan->emitOpError() << "is one of those that write more than " << kMostScanned
                             << " operations";
}

static LogicalResult noAxis(ScanOp scan, Value chunk) {
  return scan.emitOpError() << "yields chunks of rank " << build::shapeOf(chunk).size()
                            << ", which have no axis " << scan.getAxis();
}

/// Loops have no parameters inside: one that is used within a condition or a stack of layers, which
/// later passes resolve, cannot be read outside.
static bool canBeLoop(ScanOp scan) {
  WalkResult walked = scan.getBody().walk([&](UseOp use) {
    return use->getParentOp() == scan ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

LogicalResult ScanWriter::writeOut(Operation *scan) {
  // Loops of a plan nest 16 deep, and where only every K chunks are kept a scan is two of them.
  constexpr unsigned kMostDepth = 7;
  if (depth == kMostDepth)
    return scan->emitOpError() << "lies in " << kMostDepth << " scans; expected fewer";
  ++depth;
  auto chunks = dyn_cast<ScanOp>(scan);
  LogicalResult written = chunks ? write(chunks) : write(cast<PrefixScanOp>(scan));
  --depth;
  return written;
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
  int64_t start = 0;
  if (*length / chunk >= loopsFrom && canBeLoop(scan)) {
    start = *length / chunk * chunk;
    FailureOr<SmallVector<Value>> results = writeLoop(scan, *length / chunk, start < *length);
    if (failed(results))
      return failure();
    for (auto [list, value] : llvm::zip(parts, *results))
      list.push_back(value);
    llvm::copy(ArrayRef(*results).drop_front(parts.size()), carried.begin());
  }
  for (; start < *length; start += chunk) {
    const int64_t rows = std::min(chunk, *length - start);
    IRMapping mapping;
    for (auto [argument, sequence] : llvm::zip(scan.getBody().getArguments(), scan.getSequences()))
      mapping.map(argument, slice(b, sequence, axis, start, rows));
    mapping.map(scan.getBody().getArguments().drop_front(sequences), carried);
    FailureOr<SmallVector<Value>> yielded = writeBody(scan, mapping, rows);
    if (failed(yielded) || failed(checkCarried(scan, carried, *yielded)))
      return failure();
    for (auto [list, value] : llvm::zip(parts, *yielded))
      list.push_back(value);
    llvm::copy(ArrayRef(*yielded).drop_front(parts.size()), carried.begin());
  }
  return replace(scan, parts, carried);
}

LogicalResult ScanWriter::checkCarried(ScanOp scan, ValueRange before, ValueRange yielded) {
  for (auto [i, value, after] : llvm::enumerate(before, yielded.drop_front(scan.stackedCount())))
    if (value.getType() != after.getType())
      return scan.emitOpError() << "carried value " << i << " changes type from " << value.getType()
                                << " to " << after.getType();
  return success();
}

FailureOr<SmallVector<Value>> ScanWriter::writeLoop(ScanOp scan, int64_t chunks, bool hasRest) {
  OpBuilder b(scan);
  Block &body = scan.getBody().front();
  const int64_t axis = scan.getAxis(), chunk = scan.getChunk();

  // Parameters are read outside; what else comes from there is the same in every iteration.
  for (UseOp use : llvm::make_early_inc_range(body.getOps<UseOp>())) {
    use->moveBefore(scan);
    if (failed(bind(use->getIterator(), scan->getIterator())))
      return failure();
  }
  SetVector<Value> kept;
  scan.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (operand.getParentRegion()->isProperAncestor(&scan.getBody()))
        kept.insert(operand);
  });

  // An entry of its own, in front of the one that the scan is in.
  SmallVector<Value> inputs;
  SmallVector<RankedTensorType> types;
  for (Value sequence : scan.getSequences()) {
    RankedTensorType type = build::typeOf(sequence);
    SmallVector<int64_t> shape(type.getShape());
    shape[axis] = chunk;
    inputs.push_back(hasRest ? slice(b, sequence, axis, 0, chunks * chunk) : sequence);
    types.push_back(type.clone(shape));
  }
  for (Value value : scan.getInits()) {
    inputs.push_back(value);
    types.push_back(build::typeOf(value));
  }
  for (Value value : kept) {
    inputs.push_back(value);
    types.push_back(build::typeOf(value));
  }
  auto outer = scan->getParentOfType<EntryOp>();
  auto walk = WalkAttr::get(
      b.getContext(), chunks, SmallVector<int64_t>(scan.getSequences().size(), axis),
      scan.getInits().size(), SmallVector<int64_t>(scan.stackedCount(), axis), /*reverse=*/false);
  EntryOp entry = build::loopBody(outer, "scan", scan.getLoc(), walk, types);
  IRMapping mapping;
  Block &block = entry.getBody().front();
  mapping.map(body.getArguments(), block.getArguments().take_front(body.getNumArguments()));
  mapping.map(kept.getArrayRef(), block.getArguments().drop_front(body.getNumArguments()));

  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  const Attribute outerRows = environment.values.lookup(kRowsSymbol);
  environment.values[kRowsSymbol] = b.getI64IntegerAttr(chunk);
  for (Operation &op : body.without_terminator()) {
    if (++scanned > kMostScanned)
      return tooMany(scan);
    inner.clone(op, mapping);
  }
  auto end = YieldOp::create(inner, body.getTerminator()->getLoc());
  end->setOperands(llvm::map_to_vector(body.getTerminator()->getOperands(),
                                       [&](Value v) { return mapping.lookupOrDefault(v); }));
  if (failed(bind(block.begin(), end->getIterator())))
    return failure();
  restoreRows(outerRows);
  SmallVector<Value> yielded(end->getOperands());
  end.erase();
  if (failed(checkCarried(scan, scan.getInits(), yielded)))
    return failure();
  for (Value value : ValueRange(yielded).take_front(scan.stackedCount()))
    if (axis >= static_cast<int64_t>(build::shapeOf(value).size()))
      return noAxis(scan, value);
  build::endLoopBody(entry, yielded);
  return SmallVector<Value>(LoopOp::create(b, scan.getLoc(), entry, inputs).getResults());
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
      return tooMany(scan);
    yield = b.clone(op, mapping);
  }
  if (failed(bind(before ? std::next(before->getIterator()) : scan->getBlock()->begin(),
                  yield->getIterator())))
    return failure();
  SmallVector<Value> yielded(yield->getOperands());
  yield->erase();
  restoreRows(outerRows);
  return yielded;
}

void ScanWriter::restoreRows(Attribute rows) {
  if (rows)
    environment.values[kRowsSymbol] = rows;
  else
    environment.values.erase(kRowsSymbol);
}

LogicalResult ScanWriter::replace(ScanOp scan, ArrayRef<SmallVector<Value>> parts,
                                  ArrayRef<Value> carried) {
  OpBuilder b(scan);
  for (auto [result, list] : llvm::zip(scan.getResults(), parts)) {
    Value whole = list.front();
    if (list.size() > 1) {
      if (scan.getAxis() >= static_cast<int64_t>(build::shapeOf(whole).size()))
        return noAxis(scan, whole);
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
