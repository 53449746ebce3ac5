// Scans become loops, or are written out, while they are bound.
#include "passes/bind/Scans.h"

#include "dialects/hydra/Build.h"
#include "passes/bind/Bundles.h"
#include "passes/bind/PrefixScans.h"

using namespace mlir;

namespace hydra {

using scans::eachLike;
using scans::slice;

/// The length of a scan's sequences.
static FailureOr<int64_t> checkScan(ScanOp scan) {
  if (!isIntOrExpr(scan.getChunkAttr()) || isa<ExprAttr>(scan.getChunkAttr()) ||
      scan.getChunk() < 1)
    return scan.emitOpError("has a chunk that is no positive number");
  FailureOr<int64_t> length =
      scans::commonLength(scan, scan.getAxisAttr(), bundles::flat(scan.getSequences()));
  if (failed(length))
    return failure();
  constexpr int64_t kMostChunks = 65536;
  if (llvm::divideCeil(*length, scan.getChunk()) > kMostChunks)
    return scan.emitOpError() << "has more than " << kMostChunks << " chunks";
  return length;
}

static LogicalResult noAxis(ScanOp scan, Value chunk) {
  return scan.emitOpError() << "yields chunks of rank " << build::shapeOf(chunk).size()
                            << ", which have no axis " << scan.getAxis();
}

LogicalResult ScanWriter::writeOut(Operation *scan) {
  // Loops of a plan nest 16 deep, and where only every K chunks are kept a scan is two of them.
  constexpr unsigned kMostDepth = 7;
  if (depth == kMostDepth)
    return scan->emitOpError() << "lies in " << kMostDepth << " scans; expected fewer";
  ++depth;
  // What scans inside carry begins anew with every iteration.
  const bool marked = std::exchange(continued, false);
  LogicalResult written = failure();
  if (auto chunks = dyn_cast<ScanOp>(scan)) {
    written = write(chunks, marked);
  } else {
    PrefixScanWriter prefixes(cast<PrefixScanOp>(scan), bodies, loopsFrom);
    written = marked ? prefixes.writeContinued() : prefixes.write();
  }
  continued = marked;
  --depth;
  return written;
}

LogicalResult ScanWriter::write(ScanOp scan, bool marked) {
  FailureOr<int64_t> length = checkScan(scan);
  if (failed(length))
    return failure();
  const int64_t axis = scan.getAxis(), chunk = scan.getChunk();
  Joined joined;
  OpBuilder b(scan);
  if (marked) {
    const SmallVector<Value> given = scans::markBegin(
        scan, axis, chunk, bundles::flat(scan.getSequences()), bundles::flat(scan.getInits()));
    ArrayRef<Value> rest = given;
    for (OpOperand &operand : scan->getOpOperands())
      operand.set(bundles::rebuilt(b, operand.get(), rest));
  }
  SmallVector<Value> carried(scan.getInits());
  int64_t start = 0;
  if (*length / chunk >= loopsFrom && scans::canBeLoop(scan)) {
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
    FailureOr<SmallVector<Value>> yielded = bodies.write(scan, mapping, rows);
    if (failed(yielded) || failed(checkYielded(scan, *yielded, joined)))
      return failure();
    for (auto [list, value] : llvm::zip(
             joined.parts, bundles::flat(ValueRange(*yielded).take_front(scan.stackedCount()))))
      list.push_back(value);
    llvm::copy(ArrayRef(*yielded).drop_front(scan.stackedCount()), carried.begin());
  }
  return replace(scan, joined, marked, carried);
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

LogicalResult ScanWriter::writeLoop(ScanOp scan, int64_t chunks, bool hasRest, Joined &joined,
                                    SmallVectorImpl<Value> &carried) {
  OpBuilder b(scan);
  Block &body = scan.getBody().front();
  const int64_t axis = scan.getAxis(), chunk = scan.getChunk();

  FailureOr<SetVector<Value>> opened = bodies.open(scan);
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
  auto chunked = [&](size_t stacked) {
    return ScanAttr::get(b.getContext(), chunks, SmallVector<int64_t>(sequences.size(), axis),
                         inits.size(), SmallVector<int64_t>(stacked, axis), /*reverse=*/false);
  };
  EntryOp entry = build::loopBody(outer, "scan", scan.getLoc(), chunked(0), types);
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

  FailureOr<SmallVector<Value>> cloned = bodies.writeInto(block, scan, mapping, chunk);
  if (failed(cloned))
    return failure();
  const SmallVector<Value> &yielded = *cloned;
  if (failed(checkYielded(scan, yielded, joined)))
    return failure();
  for (Value value : bundles::flat(ValueRange(yielded).take_front(scan.stackedCount())))
    if (axis >= static_cast<int64_t>(build::shapeOf(value).size()))
      return noAxis(scan, value);
  entry.setScanAttr(chunked(joined.parts.size()));
  build::endLoopBody(entry, bundles::flat(yielded));
  SmallVector<Value> results(LoopOp::create(b, scan.getLoc(), entry, inputs).getResults());
  for (auto [list, value] : llvm::zip(joined.parts, results))
    list.push_back(value);
  ArrayRef<Value> last = ArrayRef(results).drop_front(joined.parts.size());
  for (auto [value, init] : llvm::zip(carried, scan.getInits()))
    value = bundles::rebuilt(b, init, last);
  return success();
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
      if (failed(bodies.bind(join->getIterator(), std::next(join->getIterator()))))
        return failure();
      whole = join;
    }
    wholes.push_back(whole);
  }
  const size_t whole = wholes.size();
  llvm::append_range(wholes, bundles::flat(carriedOn));
  if (marked)
    wholes = scans::markEnd(scan, scan.getAxis(), ArrayRef(wholes).take_front(whole),
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
