// Scans become loops, or are written out, while they are bound.
#include "passes/bind/Scans.h"

#include "dialects/hydra/Build.h"
#include "passes/bind/Bundles.h"

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
static FailureOr<int64_t> commonLength(Operation *scan, Attribute axisAttr,
                                       ArrayRef<Value> sequences) {
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

/// The length of a scan's sequences.
static FailureOr<int64_t> checkScan(ScanOp scan) {
  if (!isIntOrExpr(scan.getChunkAttr()) || isa<ExprAttr>(scan.getChunkAttr()) ||
      scan.getChunk() < 1)
    return scan.emitOpError("has a chunk that is no positive number");
  FailureOr<int64_t> length =
      commonLength(scan, scan.getAxisAttr(), bundles::flat(scan.getSequences()));
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
static bool canBeLoop(Operation *scan) {
  WalkResult walked = scan->getRegion(0).walk([&](UseOp use) {
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
  LogicalResult written = chunks      ? write(chunks)
                          : continued ? writeContinued(cast<PrefixScanOp>(scan))
                                      : write(cast<PrefixScanOp>(scan));
  --depth;
  return written;
}

/// A value like each of these, of what `part` makes of the values that it holds.
static SmallVector<Value> eachLike(OpBuilder &b, ValueRange likes,
                                   llvm::function_ref<Value(Value)> part) {
  SmallVector<Value> parts = llvm::map_to_vector(bundles::flat(likes), part), all;
  ArrayRef<Value> rest = parts;
  for (Value like : likes)
    all.push_back(bundles::rebuilt(b, like, rest));
  return all;
}

LogicalResult ScanWriter::write(ScanOp scan) {
  FailureOr<int64_t> length = checkScan(scan);
  if (failed(length))
    return failure();
  const int64_t axis = scan.getAxis(), chunk = scan.getChunk();
  Joined joined;
  OpBuilder b(scan);
  // What scans inside carry begins anew with every chunk.
  const bool marked = std::exchange(continued, false);
  if (marked) {
    const SmallVector<Value> given = begin(scan, axis, chunk, bundles::flat(scan.getSequences()),
                                           bundles::flat(scan.getInits()));
    ArrayRef<Value> rest = given;
    for (OpOperand &operand : scan->getOpOperands())
      operand.set(bundles::rebuilt(b, operand.get(), rest));
  }
  SmallVector<Value> carried(scan.getInits());
  int64_t start = 0;
  if (*length / chunk >= loopsFrom && canBeLoop(scan)) {
    start = *length / chunk * chunk;
    if (failed(writeLoop(scan, *length / chunk, start < *length, joined, carried)))
      return failure();
  }
  for (; start < *length; start += chunk) {
    const int64_t rows = std::min(chunk, *length - start);
    IRMapping mapping;
    SmallVector<Value> values = eachLike(b, scan.getSequences(), [&](Value sequence) {
      return slice(b, sequence, axis, start, rows);
    });
    llvm::append_range(values, carried);
    mapping.map(scan.getBody().getArguments(), values);
    FailureOr<SmallVector<Value>> yielded = writeBody(scan, mapping, rows);
    if (failed(yielded) || failed(checkYielded(scan, *yielded, joined)))
      return failure();
    for (auto [list, value] : llvm::zip(
             joined.parts, bundles::flat(ValueRange(*yielded).take_front(scan.stackedCount()))))
      list.push_back(value);
    llvm::copy(ArrayRef(*yielded).drop_front(scan.stackedCount()), carried.begin());
  }
  continued = marked;
  return replace(scan, joined, marked, carried);
}

SmallVector<Value> ScanWriter::begin(Operation *scan, int64_t axis, int64_t chunk,
                                     ValueRange sequences, ValueRange carried) {
  OpBuilder b(scan);
  SmallVector<Value> all(sequences);
  llvm::append_range(all, carried);
  auto mark = ScanBeginOp::create(b, scan->getLoc(), ValueRange(all).getTypes(), all,
                                  b.getI64IntegerAttr(axis), b.getI64IntegerAttr(chunk),
                                  b.getI64IntegerAttr(sequences.size()));
  return SmallVector<Value>(mark.getResults());
}

SmallVector<Value> ScanWriter::end(Operation *scan, int64_t axis, ValueRange results,
                                   ValueRange carried) {
  OpBuilder b(scan);
  SmallVector<Value> all(results);
  llvm::append_range(all, carried);
  auto mark = ScanEndOp::create(b, scan->getLoc(), ValueRange(all).getTypes(), all,
                                b.getI64IntegerAttr(axis), b.getI64IntegerAttr(results.size()));
  return SmallVector<Value>(mark.getResults());
}

LogicalResult ScanWriter::checkYielded(ScanOp scan, ValueRange yielded, Joined &joined) {
  ValueRange stacked = yielded.take_front(scan.stackedCount());
  if (joined.likes.empty()) {
    joined.likes.assign(stacked.begin(), stacked.end());
    joined.parts.resize(bundles::flat(stacked).size());
  }
  for (auto [like, value] : llvm::zip(joined.likes, stacked))
    if (failed(bundles::checkSameFields(scan, like, value)))
      return failure();
  for (auto [i, value, after] :
       llvm::enumerate(scan.getInits(), yielded.drop_front(scan.stackedCount()))) {
    if (failed(bundles::checkSameFields(scan, value, after)))
      return failure();
    for (auto [before, next] : llvm::zip(bundles::flat(value), bundles::flat(after)))
      if (before.getType() != next.getType())
        return scan.emitOpError() << "carried value " << i << " changes type from "
                                  << before.getType() << " to " << next.getType();
  }
  return success();
}

FailureOr<SetVector<Value>> ScanWriter::openBody(Operation *scan) {
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

FailureOr<SmallVector<Value>> ScanWriter::cloneBody(Operation *scan, OpBuilder &inner, Block &block,
                                                    IRMapping &mapping, int64_t rows) {
  Block &body = scan->getRegion(0).front();
  const Attribute outerRows = environment.values.lookup(kRowsSymbol);
  environment.values[kRowsSymbol] = inner.getI64IntegerAttr(rows);
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
  return yielded;
}

LogicalResult ScanWriter::writeLoop(ScanOp scan, int64_t chunks, bool hasRest, Joined &joined,
                                    SmallVectorImpl<Value> &carried) {
  OpBuilder b(scan);
  Block &body = scan.getBody().front();
  const int64_t axis = scan.getAxis(), chunk = scan.getChunk();

  FailureOr<SetVector<Value>> opened = openBody(scan);
  if (failed(opened))
    return failure();
  const SetVector<Value> &outside = *opened;
  const SmallVector<Value> all = bundles::flat(outside.getArrayRef());
  const SetVector<Value> kept(all.begin(), all.end());

  // An entry of its own, in front of the one that the scan is in.
  const SmallVector<Value> sequences = bundles::flat(scan.getSequences()),
                           inits = bundles::flat(scan.getInits());
  SmallVector<Value> inputs;
  SmallVector<RankedTensorType> types;
  for (Value sequence : sequences) {
    RankedTensorType type = build::typeOf(sequence);
    SmallVector<int64_t> shape(type.getShape());
    shape[axis] = chunk;
    inputs.push_back(hasRest ? slice(b, sequence, axis, 0, chunks * chunk) : sequence);
    types.push_back(type.clone(shape));
  }
  for (Value value : llvm::concat<const Value>(inits, kept)) {
    inputs.push_back(value);
    types.push_back(build::typeOf(value));
  }
  auto outer = scan->getParentOfType<EntryOp>();
  auto walk = [&](size_t stacked) {
    return WalkAttr::get(b.getContext(), chunks, SmallVector<int64_t>(sequences.size(), axis),
                         inits.size(), SmallVector<int64_t>(stacked, axis), /*reverse=*/false);
  };
  EntryOp entry = build::loopBody(outer, "scan", scan.getLoc(), walk(0), types);
  Block &block = entry.getBody().front();
  IRMapping inside; // what loops get, to the arguments of the entry
  SmallVector<Value> arguments(block.getArguments());
  inside.map(kept.getArrayRef(), ArrayRef(arguments).drop_front(sequences.size() + inits.size()));
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  IRMapping mapping;
  ArrayRef<Value> rest = arguments;
  for (auto [argument, operand] : llvm::zip(body.getArguments(), scan->getOperands()))
    mapping.map(argument, bundles::rebuilt(inner, operand, rest));
  for (Value value : outside)
    mapping.map(value, eachLike(inner, value, [&](Value v) { return inside.lookup(v); }).front());

  FailureOr<SmallVector<Value>> cloned = cloneBody(scan, inner, block, mapping, chunk);
  if (failed(cloned))
    return failure();
  const SmallVector<Value> &yielded = *cloned;
  if (failed(checkYielded(scan, yielded, joined)))
    return failure();
  for (Value value : bundles::flat(ValueRange(yielded).take_front(scan.stackedCount())))
    if (axis >= static_cast<int64_t>(build::shapeOf(value).size()))
      return noAxis(scan, value);
  entry.setWalkAttr(walk(joined.parts.size()));
  build::endLoopBody(entry, bundles::flat(yielded));
  SmallVector<Value> results(LoopOp::create(b, scan.getLoc(), entry, inputs).getResults());
  for (auto [list, value] : llvm::zip(joined.parts, results))
    list.push_back(value);
  ArrayRef<Value> last = ArrayRef(results).drop_front(joined.parts.size());
  for (auto [value, init] : llvm::zip(carried, scan.getInits()))
    value = bundles::rebuilt(b, init, last);
  return success();
}

SmallVector<Value> ScanWriter::likeSequences(PrefixScanOp scan, ArrayRef<Value> parts) {
  OpBuilder b(scan);
  return eachLike(b, scan.getSequences(), [&](Value) {
    Value first = parts.front();
    parts = parts.drop_front();
    return first;
  });
}

LogicalResult ScanWriter::write(PrefixScanOp scan) {
  SmallVector<Value> values = bundles::flat(scan.getSequences());
  FailureOr<int64_t> length = commonLength(scan, scan.getAxisAttr(), values);
  if (failed(length))
    return failure();
  FailureOr<bool> loops = wantsLoops(scan, values, *length);
  if (failed(loops))
    return failure();
  FailureOr<SmallVector<Value>> combined =
      *loops ? combineByLoops(scan, values, *length) : combineRows(scan, values, *length);
  if (failed(combined))
    return failure();
  scan.replaceAllUsesWith(likeSequences(scan, *combined));
  scan.erase();
  return success();
}

FailureOr<SmallVector<Value>> ScanWriter::combineRows(PrefixScanOp scan, SmallVector<Value> values,
                                                      int64_t length) {
  const int64_t axis = scan.getAxis();
  const size_t sequences = scan.getNumOperands();
  OpBuilder b(scan);
  for (int64_t distance = 1; distance < length; distance *= 2) {
    const int64_t rows = length - distance;
    SmallVector<Value> before, here;
    for (Value value : values) {
      before.push_back(slice(b, value, axis, 0, rows));
      here.push_back(slice(b, value, axis, distance, rows));
    }
    IRMapping mapping;
    mapping.map(scan.getBody().getArguments().take_front(sequences), likeSequences(scan, before));
    mapping.map(scan.getBody().getArguments().drop_front(sequences), likeSequences(scan, here));
    FailureOr<SmallVector<Value>> combined = writeBody(scan, mapping, rows);
    if (failed(combined))
      return failure();
    if (failed(checkCombined(scan, *combined, before)))
      return failure();
    for (auto [value, later] : llvm::zip(values, bundles::flat(*combined)))
      value = ConcatOp::create(b, scan.getLoc(), value.getType(),
                               ValueRange{slice(b, value, axis, 0, distance), later},
                               b.getI64IntegerAttr(axis));
  }
  return values;
}

LogicalResult ScanWriter::checkCombined(PrefixScanOp scan, ValueRange combined,
                                        ArrayRef<Value> like) {
  for (auto [sequence, value] : llvm::zip(scan.getSequences(), combined))
    if (failed(bundles::checkSameFields(scan, sequence, value)))
      return failure();
  for (auto [part, value] : llvm::zip(like, bundles::flat(combined)))
    if (value.getType() != part.getType())
      return scan.emitOpError() << "combines values of type " << part.getType() << " to "
                                << value.getType();
  return success();
}

//===-- Prefix scans by loops ---------------------------------------------------------------===//

static int64_t numbersOf(Value value) { return build::typeOf(value).getNumElements(); }

/// Whether a bound operation makes so many numbers of numbers at the same place, or needs no time.
static bool isNumberByNumber(Operation &op, int64_t numbers) {
  if (isa<ConstantOp, IotaOp, ReshapeOp, BroadcastOp, UseOp, BundleOp, FieldOp>(op))
    return true;
  auto rowWise = dyn_cast<RowWiseOpInterface>(op);
  return rowWise && rowWise.isRowWise() && !rowWise.rowDimensions() &&
         llvm::all_of(op.getResults(), [&](Value v) { return numbersOf(v) == numbers; });
}

FailureOr<bool> ScanWriter::wantsLoops(PrefixScanOp scan, ArrayRef<Value> values, int64_t length) {
  const bool nests =
      scan.getBody()
          .walk([](Operation *op) {
            return isa<ScanOp, PrefixScanOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  // Numbers of several rows of different sizes are not one step.
  const int64_t numbers = numbersOf(values.front());
  const bool sameSize = llvm::all_of(values, [&](Value v) { return numbersOf(v) == numbers; });
  if (length < std::max<int64_t>(loopsFrom, 2) || nests || !sameSize || !canBeLoop(scan))
    return false;
  // The combination of two rows, which goes again.
  Operation *outside = scan->getPrevNode();
  OpBuilder b(scan);
  SmallVector<Value> rows[2];
  for (int64_t i : {0, 1})
    for (Value value : values)
      rows[i].push_back(slice(b, value, scan.getAxis(), i, 1));
  const size_t sequences = scan.getNumOperands();
  IRMapping mapping;
  mapping.map(scan.getBody().getArguments().take_front(sequences), likeSequences(scan, rows[0]));
  mapping.map(scan.getBody().getArguments().drop_front(sequences), likeSequences(scan, rows[1]));
  Operation *last = scan->getPrevNode();
  if (failed(writeBody(scan, mapping, 1)))
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

/// A value with one dimension in the place of as many of its own as `of`, from `axis` on.
static Value redivided(OpBuilder &b, Value value, int64_t axis, size_t of, ArrayRef<int64_t> to) {
  ArrayRef<int64_t> shape = build::shapeOf(value);
  SmallVector<int64_t> after(shape.take_front(axis));
  llvm::append_range(after, to);
  llvm::append_range(after, shape.drop_front(axis + of));
  return build::reshape(b, value.getLoc(), value, after);
}

static Value join(OpBuilder &b, Value first, Value rest, int64_t axis) {
  SmallVector<int64_t> shape(build::shapeOf(first));
  shape[axis] += build::shapeOf(rest)[axis];
  return ConcatOp::create(b, first.getLoc(), build::typeOf(first).clone(shape),
                          ValueRange{first, rest}, b.getI64IntegerAttr(axis));
}

FailureOr<SmallVector<Value>>
ScanWriter::combineByLoops(PrefixScanOp scan, SmallVector<Value> values, int64_t length) {
  if (length < loopsFrom) // what chunks leave
    return combineRows(scan, std::move(values), length);
  const int64_t axis = scan.getAxis(), rows = rowsOfChunks(length), chunks = length / rows,
                whole = chunks * rows, rest = length - whole;
  OpBuilder b(scan);
  // Each value, or a part of it.
  auto ofEach = [&](ArrayRef<Value> from, llvm::function_ref<Value(Value)> make) {
    return llvm::map_to_vector(from, make);
  };
  FailureOr<SmallVector<Value>> inChunks =
      combineInChunks(scan, ofEach(values, [&](Value value) {
                        Value all = rest ? slice(b, value, axis, 0, whole) : value;
                        return redivided(b, all, axis, 1, {chunks, rows});
                      }));
  if (failed(inChunks))
    return failure();
  SmallVector<Value> all = *inChunks, joined;
  if (chunks > 1) {
    FailureOr<SmallVector<Value>> until = combineByLoops(
        scan,
        ofEach(all,
               [&](Value value) {
                 return redivided(b, slice(b, value, axis + 1, rows - 1, 1), axis, 2, {chunks});
               }),
        chunks);
    if (failed(until))
      return failure();
    FailureOr<SmallVector<Value>> later = combineWith(
        scan,
        ofEach(*until,
               [&](Value value) {
                 Value before =
                     redivided(b, slice(b, value, axis, 0, chunks - 1), axis, 1, {chunks - 1, 1});
                 SmallVector<int64_t> shape(build::shapeOf(before));
                 shape[axis + 1] = rows;
                 return redivided(b, build::broadcast(b, value.getLoc(), before, shape), axis, 2,
                                  {(chunks - 1) * rows});
               }),
        ofEach(all, [&](Value value) {
          return redivided(b, slice(b, value, axis, 1, chunks - 1), axis, 2, {(chunks - 1) * rows});
        }));
    if (failed(later))
      return failure();
    for (auto [value, behind] : llvm::zip(all, *later))
      joined.push_back(
          join(b, redivided(b, slice(b, value, axis, 0, 1), axis, 2, {rows}), behind, axis));
  } else {
    joined = ofEach(all, [&](Value value) { return redivided(b, value, axis, 2, {rows}); });
  }
  if (rest == 0)
    return joined;
  SmallVector<Value> left =
      ofEach(values, [&](Value value) { return slice(b, value, axis, whole, rest); });
  FailureOr<SmallVector<Value>> own = combineByLoops(scan, left, rest);
  if (failed(own))
    return failure();
  FailureOr<SmallVector<Value>> behind =
      combineWith(scan,
                  ofEach(joined,
                         [&](Value value) {
                           SmallVector<int64_t> shape(build::shapeOf(value));
                           shape[axis] = rest;
                           return build::broadcast(b, value.getLoc(),
                                                   slice(b, value, axis, whole - 1, 1), shape);
                         }),
                  *own);
  if (failed(behind))
    return failure();
  for (auto [value, later] : llvm::zip(joined, *behind))
    value = join(b, value, later, axis);
  return joined;
}

FailureOr<SmallVector<Value>> ScanWriter::combineWith(PrefixScanOp scan, ArrayRef<Value> before,
                                                      ArrayRef<Value> here) {
  const size_t sequences = scan.getNumOperands();
  IRMapping mapping;
  mapping.map(scan.getBody().getArguments().take_front(sequences), likeSequences(scan, before));
  mapping.map(scan.getBody().getArguments().drop_front(sequences), likeSequences(scan, here));
  FailureOr<SmallVector<Value>> combined =
      writeBody(scan, mapping, build::shapeOf(here.front())[scan.getAxis()]);
  if (failed(combined) || failed(checkCombined(scan, *combined, here)))
    return failure();
  return bundles::flat(*combined);
}

FailureOr<SmallVector<Value>> ScanWriter::combineInChunks(PrefixScanOp scan,
                                                          ArrayRef<Value> values) {
  const int64_t axis = scan.getAxis(), chunks = build::shapeOf(values.front())[axis],
                rows = build::shapeOf(values.front())[axis + 1];
  if (rows == 1)
    return SmallVector<Value>(values);
  FailureOr<SetVector<Value>> outside = openBody(scan);
  if (failed(outside))
    return failure();
  OpBuilder b(scan);
  Location loc = scan.getLoc();
  const size_t carried = values.size();
  const SmallVector<Value> kept = bundles::flat(outside->getArrayRef());
  SmallVector<Value> firsts, inputs;
  for (Value value : values)
    firsts.push_back(slice(b, value, axis + 1, 0, 1));
  for (Value value : values)
    inputs.push_back(slice(b, value, axis + 1, 1, rows - 1));
  for (Value first : firsts)
    inputs.push_back(redivided(b, first, axis, 2, {chunks}));
  llvm::append_range(inputs, kept);
  SmallVector<RankedTensorType> types;
  for (Value first : firsts)
    types.push_back(build::typeOf(first));
  for (Value value : ArrayRef(inputs).drop_front(carried))
    types.push_back(build::typeOf(value));
  const SmallVector<int64_t> axes(carried, axis + 1);
  EntryOp entry = build::loopBody(scan->getParentOfType<EntryOp>(), "scan", loc,
                                  WalkAttr::get(b.getContext(), rows - 1, axes, carried, axes,
                                                /*reverse=*/false),
                                  types);
  Block &block = entry.getBody().front();
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  const SmallVector<Value> arguments(block.getArguments());
  SmallVector<Value> here;
  for (Value chunk : ArrayRef(arguments).take_front(carried))
    here.push_back(redivided(inner, chunk, axis, 2, {chunks}));
  auto likeOperands = [&](ArrayRef<Value> parts) {
    return llvm::map_to_vector(scan.getSequences(), [&](Value sequence) {
      return bundles::rebuilt(inner, sequence, parts);
    });
  };
  IRMapping mapping;
  const size_t sequences = scan.getNumOperands();
  mapping.map(scan.getBody().getArguments().take_front(sequences),
              likeOperands(ArrayRef(arguments).slice(carried, carried)));
  mapping.map(scan.getBody().getArguments().drop_front(sequences), likeOperands(here));
  ArrayRef<Value> given = ArrayRef(arguments).drop_front(2 * carried);
  for (Value value : *outside)
    mapping.map(value, bundles::rebuilt(inner, value, given));
  FailureOr<SmallVector<Value>> yielded = cloneBody(scan, inner, block, mapping, chunks);
  const ArrayRef<Value> like = ArrayRef(inputs).slice(carried, carried);
  if (failed(yielded) || failed(checkCombined(scan, *yielded, like)))
    return failure();
  SmallVector<Value> results;
  const SmallVector<Value> next = bundles::flat(*yielded);
  inner.setInsertionPointToEnd(&block);
  for (Value value : next)
    results.push_back(redivided(inner, value, axis, 1, {chunks, 1}));
  llvm::append_range(results, next);
  build::endLoopBody(entry, results);
  auto loop = LoopOp::create(b, loc, entry, inputs);
  SmallVector<Value> all;
  for (auto [first, rest] : llvm::zip(firsts, loop.getResults()))
    all.push_back(join(b, first, rest, axis + 1));
  return all;
}

LogicalResult ScanWriter::writeContinued(PrefixScanOp scan) {
  SmallVector<Value> values = bundles::flat(scan.getSequences());
  FailureOr<int64_t> length = commonLength(scan, scan.getAxisAttr(), values);
  if (failed(length))
    return failure();
  const int64_t axis = scan.getAxis();
  const size_t flat = values.size(), sequences = scan.getNumOperands();
  OpBuilder b(scan);
  Location loc = scan.getLoc();
  // What is carried: the last row of every sequence, and whether there was one.
  SmallVector<Value> carried;
  SmallVector<RankedTensorType> marks;
  for (Value value : values) {
    SmallVector<int64_t> row(build::shapeOf(value));
    row[axis] = 1;
    carried.push_back(build::constant(b, loc, build::typeOf(value).clone(row), 0.0));
    marks.push_back(RankedTensorType::get(row, b.getF32Type()));
  }
  for (RankedTensorType type : marks)
    carried.push_back(build::constant(b, loc, type, 0.0));
  const SmallVector<Value> given = begin(scan, axis, /*chunk=*/1, values, carried);
  const ArrayRef<Value> earlier = ArrayRef(given).drop_front(flat);
  const bool marked = std::exchange(continued, false);
  FailureOr<SmallVector<Value>> own =
      combineRows(scan, SmallVector<Value>(given.begin(), given.begin() + flat), *length);
  if (failed(own))
    return failure();
  SmallVector<Value> before;
  for (auto [value, row] : llvm::zip(*own, earlier))
    before.push_back(build::broadcast(b, loc, row, build::shapeOf(value)));
  IRMapping mapping;
  mapping.map(scan.getBody().getArguments().take_front(sequences), likeSequences(scan, before));
  mapping.map(scan.getBody().getArguments().drop_front(sequences), likeSequences(scan, *own));
  FailureOr<SmallVector<Value>> both = writeBody(scan, mapping, *length);
  if (failed(both))
    return failure();
  continued = marked;
  for (auto [like, value] : llvm::zip(scan.getSequences(), *both))
    if (failed(bundles::checkSameFields(scan, like, value)))
      return failure();
  SmallVector<Value> results, next;
  for (auto [i, value] : llvm::enumerate(bundles::flat(*both))) {
    Value alone = (*own)[i];
    if (value.getType() != alone.getType())
      return scan.emitOpError() << "combines values of type " << alone.getType() << " to "
                                << value.getType();
    Value mark = build::broadcast(b, loc, earlier[flat + i], build::shapeOf(value));
    Value zero = build::constant(b, loc, mark.getType(), 0.0);
    Value any = CompareOp::create(b, loc, mark, zero, b.getStringAttr("gt"));
    results.push_back(SelectOp::create(b, loc, any, value, alone));
    next.push_back(slice(b, results.back(), axis, *length - 1, 1));
  }
  for (RankedTensorType type : marks)
    next.push_back(build::constant(b, loc, type, 1.0));
  const SmallVector<Value> ended = end(scan, axis, results, next);
  scan.replaceAllUsesWith(likeSequences(scan, ArrayRef(ended).take_front(flat)));
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

LogicalResult ScanWriter::replace(ScanOp scan, const Joined &joined, bool marked,
                                  ArrayRef<Value> carriedOn) {
  OpBuilder b(scan);
  SmallVector<Value> wholes;
  for (const SmallVector<Value> &list : joined.parts) {
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
    wholes.push_back(whole);
  }
  const size_t whole = wholes.size();
  llvm::append_range(wholes, bundles::flat(carriedOn));
  if (marked)
    wholes = end(scan, scan.getAxis(), ArrayRef(wholes).take_front(whole),
                 ArrayRef(wholes).drop_front(whole));
  ArrayRef<Value> rest = wholes;
  SmallVector<Value> results;
  for (Value like : llvm::concat<const Value>(joined.likes, carriedOn))
    results.push_back(bundles::rebuilt(b, like, rest));
  scan.replaceAllUsesWith(results);
  scan.erase();
  return success();
}

} // namespace hydra
