// Happens-before by vector clocks, and the ordering rule of plans.
#include "dialects/plan/Ordering.h"

#include <limits>

using namespace mlir;

namespace hydra::plan {

ListOrder::ListOrder(Block &list) : list(list) {
  int64_t streams = 1;
  for (Operation &op : list)
    if (auto block = dyn_cast<BlockInterface>(op))
      streams = std::max(streams, block.getStreamNumber() + 1);
  std::vector<int64_t> last(streams, -1), count(streams, 0);
  DenseMap<int64_t, int64_t> signaller;
  for (Operation &op : list) {
    auto block = dyn_cast<BlockInterface>(op);
    if (!block)
      continue;
    int64_t position = operations.size(), stream = block.getStreamNumber();
    SmallVector<int64_t, 4> clock(streams, -1);
    auto follow = [&](int64_t other) {
      for (int64_t s = 0; s < streams; ++s)
        clock[s] = std::max(clock[s], clocks[other][s]);
      clock[streamOf[other]] = std::max(clock[streamOf[other]], indexInStream[other]);
    };
    if (last[stream] >= 0)
      follow(last[stream]);
    for (int64_t event : block.getAwaited())
      if (auto it = signaller.find(event); it != signaller.end())
        follow(it->second);
    operations.push_back(&op);
    positions[&op] = position;
    streamOf.push_back(stream);
    indexInStream.push_back(count[stream]++);
    clocks.push_back(std::move(clock));
    last[stream] = position;
    if (block.getSignalled() >= 0)
      signaller[block.getSignalled()] = position;
  }
}

int64_t ListOrder::positionOf(Operation *op) const {
  Operation *ancestor = list.findAncestorOpInBlock(*op);
  auto it = positions.find(ancestor);
  return it == positions.end() ? -1 : it->second;
}

bool ListOrder::before(int64_t a, int64_t b) const {
  return clocks[b][streamOf[a]] >= indexInStream[a];
}

bool ListOrder::isTotal() const {
  for (int64_t next = 1; next < static_cast<int64_t>(operations.size()); ++next)
    if (!before(next - 1, next))
      return false;
  return true;
}

SmallVector<BufferUse> usesOf(Operation *block) {
  SmallVector<BufferUse> uses;
  block->walk([&](Operation *op) {
    if (auto step = dyn_cast<StepInterface>(op)) {
      for (auto [value, access] : llvm::zip_equal(step.getArgs(), step.getAccesses()))
        uses.push_back({value, access != kRead});
    } else if (auto choice = dyn_cast<SwitchOp>(op)) {
      uses.push_back({choice.getSelector(), false});
    }
  });
  return uses;
}

support::ByteRange bytesOf(Value value) {
  auto type = cast<MemRefType>(value.getType());
  const int64_t element = elementBytes(type.getElementType()), begin = placeOf(value).bytes;
  SmallVector<support::ByteStep> steps;
  for (auto [size, stride] : llvm::zip(type.getShape(), stridesOf(type)))
    steps.push_back({static_cast<uint64_t>(size), stride * element});
  if (const auto bytes = support::repeatedBytes(begin, element, steps))
    return *bytes;
  return {0, std::numeric_limits<int64_t>::max()};
}

namespace {

/// The bytes a use touches inside its buffer, or inside the segment once offsets are known. A
/// buffer that an enclosing loop moves counts whole.
struct ByteUse {
  Attribute segment; ///< null while the buffer stands for itself
  Operation *buffer;
  support::ByteRange bytes;
  int64_t block;
  bool writes;
};

ByteUse byteUse(const BufferUse &use, int64_t block, const DenseSet<Value> &moved) {
  BufferOp buffer = placeOf(use.value).buffer;
  support::ByteRange bytes =
      bytesOf(moved.contains(use.value) ? Value(buffer.getBuffer()) : use.value);
  if (!buffer.getOffset())
    return {{}, buffer, bytes, block, use.writes};
  bytes.begin += *buffer.getOffset();
  bytes.end += *buffer.getOffset();
  return {buffer.getSegmentAttr(), nullptr, bytes, block, use.writes};
}

LogicalResult verifyList(Block &list, const DenseSet<Value> &moved) {
  ListOrder order(list);
  DenseSet<int64_t> signalled;
  bool oneStream = true;
  for (Operation *op : order.blocks()) {
    auto block = cast<BlockInterface>(op);
    if (block.getStreamNumber() < 0)
      return op->emitOpError() << "runs on stream " << block.getStreamNumber();
    oneStream &= block.getStreamNumber() == 0;
    for (int64_t event : block.getAwaited())
      if (!signalled.contains(event))
        return op->emitOpError() << "waits for event " << event << ", which nothing before signals";
    if (block.getSignalled() >= 0 && !signalled.insert(block.getSignalled()).second)
      return op->emitOpError() << "signals event " << block.getSignalled() << " a second time";
  }
  for (Operation *op : order.blocks()) {
    DenseSet<Value> inner = moved;
    if (auto loop = dyn_cast<LoopOp>(op))
      inner.insert(loop.getMoving().begin(), loop.getMoving().end());
    for (Region &region : op->getRegions())
      if (failed(verifyList(region.front(), inner)))
        return failure();
  }
  if (oneStream) // in order by itself
    return success();

  std::vector<ByteUse> uses;
  for (auto [position, op] : llvm::enumerate(order.blocks())) {
    DenseSet<Value> inner = moved;
    op->walk([&](LoopOp loop) { inner.insert(loop.getMoving().begin(), loop.getMoving().end()); });
    for (const BufferUse &use : usesOf(op))
      uses.push_back(byteUse(use, position, inner));
  }
  // Sweep by address: only uses that overlap are compared.
  llvm::sort(uses, [](const ByteUse &a, const ByteUse &b) {
    return std::tuple(a.segment.getAsOpaquePointer(), a.buffer, a.bytes.begin) <
           std::tuple(b.segment.getAsOpaquePointer(), b.buffer, b.bytes.begin);
  });
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = i + 1;
         j < uses.size() && uses[j].segment == uses[i].segment &&
         uses[j].buffer == uses[i].buffer && uses[j].bytes.begin < uses[i].bytes.end;
         ++j) {
      const ByteUse &a = uses[i], &b = uses[j];
      if ((!a.writes && !b.writes) || a.block == b.block || order.before(a.block, b.block) ||
          order.before(b.block, a.block) || !overlap(a.bytes, b.bytes))
        continue;
      int64_t first = std::min(a.block, b.block), second = std::max(a.block, b.block);
      return order.blocks()[second]->emitOpError()
             << "shares bytes with block " << first << " of its list, one of them writes, and "
             << "neither stream nor event orders the two";
    }
  return success();
}

} // namespace

LogicalResult verifyOrder(ProgramOp program) { return verifyList(program.getBody().front(), {}); }

} // namespace hydra::plan
