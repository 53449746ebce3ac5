// Prefix scans become loops, or are written out, while they are bound.
#include "passes/bind/PrefixScans.h"

#include "dialects/hydra/Build.h"
#include "passes/bind/Bundles.h"

using namespace mlir;

namespace hydra {

using scans::slice;

//===-- Values ------------------------------------------------------------------------------===//

static SmallVector<Value> ofEach(ArrayRef<Value> values, llvm::function_ref<Value(Value)> make) {
  return llvm::map_to_vector(values, make);
}

/// A value with the dimensions `to` in the place of as many of its own as `of`, from `axis` on.
static Value redivided(OpBuilder &b, Value value, int64_t axis, size_t of, ArrayRef<int64_t> to) {
  ArrayRef<int64_t> shape = build::shapeOf(value);
  SmallVector<int64_t> after(shape.take_front(axis));
  llvm::append_range(after, to);
  llvm::append_range(after, shape.drop_front(axis + of));
  return build::reshape(b, value.getLoc(), value, after);
}

/// One row, so many times along its axis.
static Value repeated(OpBuilder &b, Value row, int64_t axis, int64_t times) {
  SmallVector<int64_t> shape(build::shapeOf(row));
  shape[axis] = times;
  return build::broadcast(b, row.getLoc(), row, shape);
}

static Value join(OpBuilder &b, Value first, Value rest, int64_t axis) {
  SmallVector<int64_t> shape(build::shapeOf(first));
  shape[axis] += build::shapeOf(rest)[axis];
  return ConcatOp::create(b, first.getLoc(), build::typeOf(first).clone(shape),
                          ValueRange{first, rest}, b.getI64IntegerAttr(axis));
}

FailureOr<SmallVector<Value>> PrefixScanWriter::readSequences() {
  Values values = bundles::flat(scan.getSequences());
  if (failed(scans::commonLength(scan, scan.getAxisAttr(), values)))
    return failure();
  axis = scan.getAxis();
  return values;
}

int64_t PrefixScanWriter::rowsOf(ArrayRef<Value> values) const {
  return build::shapeOf(values.front())[axis];
}

SmallVector<Value> PrefixScanWriter::likeSequences(OpBuilder &b, ArrayRef<Value> values) {
  return scans::eachLike(b, scan.getSequences(), [&](Value) {
    Value first = values.front();
    values = values.drop_front();
    return first;
  });
}

void PrefixScanWriter::replace(ArrayRef<Value> values) {
  OpBuilder b(scan);
  scan.replaceAllUsesWith(likeSequences(b, values));
  scan.erase();
}

//===-- Pairs of rows -----------------------------------------------------------------------===//

IRMapping PrefixScanWriter::argumentsOf(OpBuilder &b, ArrayRef<Value> before,
                                        ArrayRef<Value> here) {
  const size_t sequences = scan.getNumOperands();
  IRMapping mapping;
  mapping.map(scan.getBody().getArguments().take_front(sequences), likeSequences(b, before));
  mapping.map(scan.getBody().getArguments().drop_front(sequences), likeSequences(b, here));
  return mapping;
}

FailureOr<SmallVector<Value>> PrefixScanWriter::combine(ArrayRef<Value> before,
                                                        ArrayRef<Value> here) {
  OpBuilder b(scan);
  IRMapping mapping = argumentsOf(b, before, here);
  FailureOr<Values> combined = bodies.write(scan, mapping, rowsOf(here));
  if (failed(combined) || failed(checkCombined(*combined, here)))
    return failure();
  return bundles::flat(*combined);
}

LogicalResult PrefixScanWriter::checkCombined(ValueRange combined, ArrayRef<Value> like) {
  for (auto [sequence, value] : llvm::zip(scan.getSequences(), combined))
    if (failed(bundles::checkSameFields(scan, sequence, value)))
      return failure();
  for (auto [part, value] : llvm::zip(like, bundles::flat(combined)))
    if (value.getType() != part.getType())
      return scan.emitOpError() << "combines values of type " << part.getType() << " to "
                                << value.getType();
  return success();
}

//===-- Whole sequences ---------------------------------------------------------------------===//

LogicalResult PrefixScanWriter::write() {
  FailureOr<Values> values = readSequences();
  if (failed(values))
    return failure();
  FailureOr<bool> loops = wantsLoops(*values);
  if (failed(loops))
    return failure();
  FailureOr<Values> combined = *loops ? combineByLoops(*values) : combineRows(*values);
  if (failed(combined))
    return failure();
  replace(*combined);
  return success();
}

FailureOr<SmallVector<Value>> PrefixScanWriter::combineRows(Values values) {
  const int64_t length = rowsOf(values);
  OpBuilder b(scan);
  for (int64_t distance = 1; distance < length; distance *= 2) {
    const int64_t rows = length - distance;
    Values before, here;
    for (Value value : values) {
      before.push_back(slice(b, value, axis, 0, rows));
      here.push_back(slice(b, value, axis, distance, rows));
    }
    FailureOr<Values> combined = combine(before, here);
    if (failed(combined))
      return failure();
    for (auto [value, later] : llvm::zip(values, *combined))
      value = ConcatOp::create(b, scan.getLoc(), value.getType(),
                               ValueRange{slice(b, value, axis, 0, distance), later},
                               b.getI64IntegerAttr(axis));
  }
  return values;
}

LogicalResult PrefixScanWriter::writeContinued() {
  FailureOr<Values> read = readSequences();
  if (failed(read))
    return failure();
  const size_t count = read->size();
  OpBuilder b(scan);
  Location loc = scan.getLoc();
  // What is carried: the last row of every sequence, and whether there was one.
  Values carried;
  SmallVector<RankedTensorType> marks;
  for (Value value : *read) {
    SmallVector<int64_t> row(build::shapeOf(value));
    row[axis] = 1;
    carried.push_back(build::constant(b, loc, build::typeOf(value).clone(row), 0.0));
    marks.push_back(RankedTensorType::get(row, b.getF32Type()));
  }
  for (RankedTensorType type : marks)
    carried.push_back(build::constant(b, loc, type, 0.0));
  const Values given = scans::markBegin(scan, axis, /*chunk=*/1, *read, carried);
  const ArrayRef<Value> values = ArrayRef(given).take_front(count),
                        lastRows = ArrayRef(given).slice(count, count),
                        anyRows = ArrayRef(given).drop_front(2 * count);
  FailureOr<Values> own = combineRows(Values(values));
  if (failed(own))
    return failure();
  const int64_t length = rowsOf(*own);
  FailureOr<Values> both =
      combine(ofEach(lastRows, [&](Value row) { return repeated(b, row, axis, length); }), *own);
  if (failed(both))
    return failure();
  Values results, next;
  for (auto [value, alone, seen] : llvm::zip(*both, *own, anyRows)) {
    Value mark = build::broadcast(b, loc, seen, build::shapeOf(value));
    Value zero = build::constant(b, loc, mark.getType(), 0.0);
    Value any = CompareOp::create(b, loc, mark, zero, Predicate::gt);
    results.push_back(SelectOp::create(b, loc, any, value, alone));
    next.push_back(slice(b, results.back(), axis, length - 1, 1));
  }
  for (RankedTensorType type : marks)
    next.push_back(build::constant(b, loc, type, 1.0));
  const Values ended = scans::markEnd(scan, axis, results, next);
  replace(ArrayRef(ended).take_front(count));
  return success();
}

//===-- By loops ----------------------------------------------------------------------------===//

static int64_t numbersOf(Value value) { return build::typeOf(value).getNumElements(); }

/// Whether a bound operation makes so many numbers of numbers at the same place, or needs no time.
static bool isNumberByNumber(Operation &op, int64_t numbers) {
  if (isa<ConstantOp, IotaOp, ReshapeOp, BroadcastOp, UseOp, BundleOp, FieldOp>(op))
    return true;
  auto rowWise = dyn_cast<RowWiseOpInterface>(op);
  return rowWise && rowWise.isRowWise() && !rowWise.rowDimensions() &&
         llvm::all_of(op.getResults(), [&](Value v) { return numbersOf(v) == numbers; });
}

FailureOr<bool> PrefixScanWriter::wantsLoops(ArrayRef<Value> values) {
  const int64_t length = rowsOf(values);
  const bool nests =
      scan.getBody()
          .walk([](Operation *op) {
            return isa<ScanOp, PrefixScanOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  // Numbers of several rows of different sizes are not one step.
  const int64_t numbers = numbersOf(values.front());
  const bool sameSize = llvm::all_of(values, [&](Value v) { return numbersOf(v) == numbers; });
  if (length < std::max<int64_t>(loopsFrom, 2) || nests || !sameSize || !scans::canBeLoop(scan))
    return false;
  // The combination of two rows, which goes again.
  Operation *outside = scan->getPrevNode();
  OpBuilder b(scan);
  Values rows[2];
  for (int64_t i : {0, 1})
    rows[i] = ofEach(values, [&](Value value) { return slice(b, value, axis, i, 1); });
  IRMapping mapping = argumentsOf(b, rows[0], rows[1]);
  Operation *last = scan->getPrevNode();
  if (failed(bodies.write(scan, mapping, 1)))
    return failure();
  bool byNumbers = true;
  for (Operation *op = scan->getPrevNode(); op != last; op = op->getPrevNode())
    byNumbers &= isNumberByNumber(*op, numbers / length);
  for (Operation *op = scan->getPrevNode(); op != outside;) {
    Operation *before = op->getPrevNode();
    if (op->use_empty())
      op->erase();
    op = before;
  }
  return byNumbers;
}

/// How many rows a chunk has: about as many as there are chunks, and such that no row is left where
/// that can be.
static int64_t rowsOfChunks(int64_t length) {
  constexpr int64_t mostInOneLoop = 128;
  if (length <= mostInOneLoop)
    return length;
  int64_t root = 1;
  while ((root + 1) * (root + 1) <= length)
    ++root;
  for (int64_t away = 0; 2 * away <= root; ++away)
    for (int64_t rows : {root - away, root + away})
      if (length % rows == 0)
        return rows;
  return root;
}

FailureOr<SmallVector<Value>> PrefixScanWriter::combineByLoops(ArrayRef<Value> values) {
  const int64_t length = rowsOf(values);
  if (length < loopsFrom) // what chunks leave
    return combineRows(Values(values));
  const int64_t rows = rowsOfChunks(length), chunks = length / rows, whole = chunks * rows,
                rest = length - whole;
  OpBuilder b(scan);
  FailureOr<Values> joined = combineChunks(ofEach(values, [&](Value value) {
    Value all = rest ? slice(b, value, axis, 0, whole) : value;
    return redivided(b, all, axis, 1, {chunks, rows});
  }));
  if (failed(joined) || rest == 0)
    return joined;
  FailureOr<Values> own = combineByLoops(
      ofEach(values, [&](Value value) { return slice(b, value, axis, whole, rest); }));
  if (failed(own))
    return failure();
  FailureOr<Values> behind =
      combine(ofEach(*joined,
                     [&](Value value) {
                       return repeated(b, slice(b, value, axis, whole - 1, 1), axis, rest);
                     }),
              *own);
  if (failed(behind))
    return failure();
  for (auto [value, later] : llvm::zip(*joined, *behind))
    value = join(b, value, later, axis);
  return joined;
}

FailureOr<SmallVector<Value>> PrefixScanWriter::combineChunks(ArrayRef<Value> values) {
  const int64_t chunks = rowsOf(values), rows = build::shapeOf(values.front())[axis + 1],
                later = chunks - 1;
  OpBuilder b(scan);
  FailureOr<Values> inChunks = combineInChunks(values);
  if (failed(inChunks))
    return failure();
  if (chunks == 1)
    return ofEach(*inChunks, [&](Value value) { return redivided(b, value, axis, 2, {rows}); });
  FailureOr<Values> until = combineByLoops(ofEach(*inChunks, [&](Value value) {
    return redivided(b, slice(b, value, axis + 1, rows - 1, 1), axis, 2, {chunks});
  }));
  if (failed(until))
    return failure();
  const Values before = ofEach(*until, [&](Value value) {
    Value row = redivided(b, slice(b, value, axis, 0, later), axis, 1, {later, 1});
    return redivided(b, repeated(b, row, axis + 1, rows), axis, 2, {later * rows});
  });
  FailureOr<Values> behind =
      combine(before, ofEach(*inChunks, [&](Value value) {
                return redivided(b, slice(b, value, axis, 1, later), axis, 2, {later * rows});
              }));
  if (failed(behind))
    return failure();
  Values all;
  for (auto [value, after] : llvm::zip(*inChunks, *behind))
    all.push_back(join(b, redivided(b, slice(b, value, axis, 0, 1), axis, 2, {rows}), after, axis));
  return all;
}

FailureOr<SmallVector<Value>> PrefixScanWriter::combineInChunks(ArrayRef<Value> values) {
  const int64_t chunks = rowsOf(values), rows = build::shapeOf(values.front())[axis + 1];
  if (rows == 1)
    return Values(values);
  FailureOr<SetVector<Value>> outside = bodies.open(scan);
  if (failed(outside))
    return failure();
  OpBuilder b(scan);
  Location loc = scan.getLoc();
  const size_t carried = values.size();
  const Values firsts =
      ofEach(values, [&](Value value) { return slice(b, value, axis + 1, 0, 1); });
  // The loop goes over the later rows, carries what the rows until there combine to, and is given
  // what the body reads outside.
  Values inputs =
      ofEach(values, [&](Value value) { return slice(b, value, axis + 1, 1, rows - 1); });
  for (Value first : firsts)
    inputs.push_back(redivided(b, first, axis, 2, {chunks}));
  llvm::append_range(inputs, bundles::flat(outside->getArrayRef()));
  SmallVector<RankedTensorType> types;
  for (Value first : firsts)
    types.push_back(build::typeOf(first));
  for (Value value : ArrayRef(inputs).drop_front(carried))
    types.push_back(build::typeOf(value));
  const SmallVector<int64_t> axes(carried, axis + 1);
  EntryOp entry = build::loopBody(scan->getParentOfType<EntryOp>(), "scan", loc,
                                  ScanAttr::get(b.getContext(), rows - 1, axes, carried, axes,
                                                /*reverse=*/false),
                                  types);
  Block &block = entry.getBody().front();
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  const Values arguments(block.getArguments());
  const Values here = ofEach(ArrayRef(arguments).take_front(carried), [&](Value chunk) {
    return redivided(inner, chunk, axis, 2, {chunks});
  });
  IRMapping mapping = argumentsOf(inner, ArrayRef(arguments).slice(carried, carried), here);
  ArrayRef<Value> given = ArrayRef(arguments).drop_front(2 * carried);
  for (Value value : *outside)
    mapping.map(value, bundles::rebuilt(inner, value, given));
  FailureOr<Values> yielded = bodies.writeInto(block, scan, mapping, chunks);
  if (failed(yielded) || failed(checkCombined(*yielded, ArrayRef(inputs).slice(carried, carried))))
    return failure();
  const Values next = bundles::flat(*yielded);
  inner.setInsertionPointToEnd(&block);
  Values results =
      ofEach(next, [&](Value value) { return redivided(inner, value, axis, 1, {chunks, 1}); });
  llvm::append_range(results, next);
  build::endLoopBody(entry, results);
  auto loop = LoopOp::create(b, loc, entry, inputs);
  Values all;
  for (auto [first, rest] : llvm::zip(firsts, loop.getResults()))
    all.push_back(join(b, first, rest, axis + 1));
  return all;
}

} // namespace hydra
