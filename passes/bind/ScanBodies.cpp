// Bodies of scans and prefix scans, bound for the rows that they are given.
#include "passes/bind/ScanBodies.h"

#include "dialects/hydra/Build.h"
#include "passes/bind/Bundles.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace hydra {

/// Far beyond any model: scans in scans multiply.
static constexpr int64_t kMostScanned = 1'000'000;

static LogicalResult tooMany(Operation *scan) {
  return scan->emitOpError() << "is one of those that write more than " << kMostScanned
                             << " operations";
}

FailureOr<SetVector<Value>> ScanBodies::open(Operation *scan) {
  // Parameters are read outside; what else comes from there is the same in every iteration.
  Region &body = scan->getRegion(0);
  for (UseOp use : llvm::make_early_inc_range(body.front().getOps<UseOp>())) {
    use->moveBefore(scan);
    if (failed(bind(use->getIterator(), scan->getIterator())))
      return failure();
  }
  SmallVector<FieldOp> fields; // of bundles from outside, of which only these are read
  body.walk([&](FieldOp field) {
    if (field.getBundle().getDefiningOp<BundleOp>())
      fields.push_back(field);
  });
  for (FieldOp field : fields)
    if (failed(bundles::take(field)))
      return failure();
  SetVector<Value> outside;
  body.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (operand.getParentRegion()->isProperAncestor(&body))
        outside.insert(operand);
  });
  return outside;
}

/// The body of a prefix scan is given any number of pairs at a time, on
/// which nothing may depend.
Attribute ScanBodies::setRows(Operation *scan, int64_t rows) {
  const Attribute outer = environment.values.lookup(kRowsSymbol);
  restoreRows(isa<PrefixScanOp>(scan) ? Attribute() : Builder(scan).getI64IntegerAttr(rows));
  return outer;
}

FailureOr<SmallVector<Value>> ScanBodies::write(Operation *scan, IRMapping &mapping, int64_t rows) {
  OpBuilder b(scan);
  const Attribute outerRows = setRows(scan, rows);
  const llvm::scope_exit restored([&] { restoreRows(outerRows); });
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
  return yielded;
}

FailureOr<SmallVector<Value>> ScanBodies::writeInto(Block &block, Operation *scan,
                                                    IRMapping &mapping, int64_t rows) {
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  Block &body = scan->getRegion(0).front();
  const Attribute outerRows = setRows(scan, rows);
  const llvm::scope_exit restored([&] { restoreRows(outerRows); });
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
  SmallVector<Value> yielded(end->getOperands());
  end.erase();
  return yielded;
}

void ScanBodies::restoreRows(Attribute rows) {
  if (rows)
    environment.values[kRowsSymbol] = rows;
  else
    environment.values.erase(kRowsSymbol);
}

namespace scans {

Value slice(OpBuilder &b, Value v, int64_t axis, int64_t start, int64_t rows) {
  return build::slice(b, v.getLoc(), v, axis, start, rows);
}

FailureOr<int64_t> commonLength(Operation *scan, Attribute axisAttr, ArrayRef<Value> sequences) {
  auto number = dyn_cast<IntegerAttr>(axisAttr);
  if (!number)
    return scan->emitOpError("has an axis that is no number");
  const int64_t axis = number.getInt();
  std::optional<int64_t> length;
  for (Value sequence : sequences) {
    ArrayRef<int64_t> shape = build::shapeOf(sequence);
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
      return scan->emitOpError() << "has axis " << axis << " but scans a tensor of "
                                 << shapeText(shape);
    if (length && *length != shape[axis])
      return scan->emitOpError() << "scans sequences of " << *length << " and " << shape[axis]
                                 << " rows";
    length = shape[axis];
  }
  return *length;
}

bool canBeLoop(Operation *scan) {
  WalkResult walked = scan->getRegion(0).walk([&](UseOp use) {
    return use->getParentOp() == scan ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

SmallVector<Value> eachLike(OpBuilder &b, ValueRange likes, llvm::function_ref<Value(Value)> part) {
  SmallVector<Value> parts = llvm::map_to_vector(bundles::flat(likes), part), all;
  ArrayRef<Value> rest = parts;
  for (Value like : likes)
    all.push_back(bundles::rebuilt(b, like, rest));
  return all;
}

SmallVector<Value> markBegin(Operation *scan, int64_t axis, int64_t chunk, ValueRange sequences,
                             ValueRange carried) {
  OpBuilder b(scan);
  SmallVector<Value> all(sequences);
  llvm::append_range(all, carried);
  auto mark = ScanBeginOp::create(b, scan->getLoc(), ValueRange(all).getTypes(), all,
                                  b.getI64IntegerAttr(axis), b.getI64IntegerAttr(chunk),
                                  b.getI64IntegerAttr(sequences.size()));
  return SmallVector<Value>(mark.getResults());
}

SmallVector<Value> markEnd(Operation *scan, int64_t axis, ValueRange results, ValueRange carried) {
  OpBuilder b(scan);
  SmallVector<Value> all(results);
  llvm::append_range(all, carried);
  auto mark = ScanEndOp::create(b, scan->getLoc(), ValueRange(all).getTypes(), all,
                                b.getI64IntegerAttr(axis), b.getI64IntegerAttr(results.size()));
  return SmallVector<Value>(mark.getResults());
}

} // namespace scans
} // namespace hydra
