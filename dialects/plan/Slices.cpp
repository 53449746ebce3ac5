// Which loops fall apart into slices.
#include "dialects/plan/Slices.h"

#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/RowForms.h"
#include "dialects/hydra/RowPartition.h"
#include "dialects/plan/Ordering.h"

#include "llvm/ADT/MapVector.h"

#include <limits>

using namespace mlir;

namespace hydra::plan {

std::optional<unsigned> leadingDimensions(ArrayRef<int64_t> shape, int64_t slices) {
  int64_t product = 1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    product *= size;
    if (product >= slices)
      return product == slices ? std::optional<unsigned>(i + 1) : std::nullopt;
  }
  return std::nullopt;
}

static MemRefType typeOf(Value buffer) { return cast<MemRefType>(buffer.getType()); }

/// Whether a step works on floats of 8 bits, which kernels of loops do not.
static bool hasEightBits(OperandRange args) {
  return llvm::any_of(args, [](Value arg) {
    const Type element = typeOf(arg).getElementType();
    return isEightBitFloat(element) || isInt8(element);
  });
}

/// All arguments of a step whose dimensions are batch and the last `inner`.
static FailureOr<SmallVector<unsigned>> slicedBatches(OperandRange args, unsigned inner,
                                                      int64_t slices) {
  SmallVector<unsigned> sliced;
  for (Value arg : args) {
    ArrayRef<int64_t> shape = typeOf(arg).getShape();
    if (shape.size() < inner)
      return failure();
    std::optional<unsigned> leading = leadingDimensions(shape.drop_back(inner), slices);
    int64_t rest = 1;
    for (int64_t size : shape.drop_back(inner).drop_front(leading.value_or(0)))
      rest *= size;
    if (!leading || rest != 1)
      return failure();
    sliced.push_back(*leading);
  }
  return sliced;
}

FailureOr<SmallVector<unsigned>> CopyOp::slicedDimensions(int64_t slices) {
  if (hasEightBits(getOperands()))
    return failure();
  SmallVector<unsigned> sliced;
  for (Value arg : getOperands()) {
    std::optional<unsigned> leading = leadingDimensions(typeOf(arg).getShape(), slices);
    if (!leading)
      return failure();
    sliced.push_back(*leading);
  }
  return sliced;
}

FailureOr<SmallVector<unsigned>> MatmulOp::slicedDimensions(int64_t slices) {
  if (getBias() || getWeightScale() || getScaleA() || getGelu() || getMultiprocessors() != 0)
    return failure();
  return slicedBatches(getOperands(), 2, slices);
}

FailureOr<SmallVector<unsigned>> LaunchOp::slicedDimensions(int64_t slices) {
  auto kernel = (*this)->getParentOfType<PlanModuleOp>().lookupSymbol<KernelOp>(getKernelAttr());
  auto groups = kernel.getBody().getOps<FusedOp>();
  if (groups.empty() || getLimit() || hasEightBits(getArgs()) ||
      getArgs().size() != kernel.getLayouts().size())
    return failure();
  FusedOp group = *groups.begin();
  RowDomain domain = group.getDomain();
  std::optional<unsigned> leading = leadingDimensions(domain.rowShape, slices);
  if (!leading)
    return failure();
  for (unsigned i = 0; i < group.getInputs().size(); ++i)
    if (group.isOuterOnly(i))
      return failure();
  for (unsigned i = 0; i < group->getNumResults(); ++i)
    if (sumsOverRows(group, i))
      return failure();
  SmallVector<unsigned> sliced;
  for (Value arg : getArgs()) {
    std::optional<RowForm> form = formOfShape(domain, typeOf(arg).getShape());
    if (!form)
      return failure();
    bool rows = *form == RowForm::Tile || *form == RowForm::Row;
    sliced.push_back(rows ? *leading : 0);
  }
  return sliced;
}

int64_t sliceOffset(MemRefType type, unsigned dimensions, int64_t slice) {
  SmallVector<int64_t> strides = stridesOf(type);
  int64_t offset = 0;
  for (unsigned d = dimensions; d-- > 0; slice /= type.getDimSize(d))
    offset += slice % type.getDimSize(d) * strides[d];
  return offset;
}

bool liesInOwnPart(Value value, unsigned dimensions, int64_t slices) {
  MemRefType type = typeOf(value);
  Place place = placeOf(value);
  const int64_t element = elementBytes(type.getElementType());
  const int64_t whole = extentBytes(typeOf(place.buffer));
  auto isMoved = [&](Operation *user) {
    auto loop = dyn_cast<LoopOp>(user);
    return loop && llvm::is_contained(loop.getMoving(), value);
  };
  if (dimensions == 0 || whole % slices != 0 || llvm::any_of(value.getUsers(), isMoved))
    return false;
  SmallVector<int64_t> strides = stridesOf(type);
  int64_t extent = 1; // of one slice
  for (unsigned d = dimensions; d < strides.size(); ++d)
    extent += (type.getDimSize(d) - 1) * strides[d];
  for (int64_t slice = 0; slice < slices; ++slice) {
    const int64_t begin =
        place.bytes + element * sliceOffset(type, dimensions, slice) - slice * (whole / slices);
    // All slices lie alike in their parts, so that one offset serves them.
    if (begin < 0 || begin + element * extent > whole / slices || begin != place.bytes)
      return false;
  }
  return true;
}

LaneLayout laneLayoutOf(LoopOp loop, Value value) {
  const Place place = placeOf(value);
  MemRefType type = typeOf(value);
  LaneLayout layout{place.buffer, type.getElementType(), place.bytes, {}, {}};
  for (auto [size, stride] : llvm::zip(type.getShape(), stridesOf(type))) {
    if (size == 1)
      continue;
    if (!layout.dims.empty() && layout.dims.back().second == size * stride)
      layout.dims.back() = {layout.dims.back().first * size, stride};
    else
      layout.dims.emplace_back(size, stride);
  }
  for (; loop; loop = loop->getParentOfType<LoopOp>()) {
    auto moving = llvm::find(loop.getMoving(), value);
    layout.moves.push_back(moving == loop.getMoving().end()
                               ? 0
                               : loop.getStrides()[moving - loop.getMoving().begin()]);
  }
  return layout;
}

/// Whether two views of a buffer never have an element in common, in whatever iterations of a loop
/// of so many: in every period of some stride each lies in a part of its own, as parts of a
/// concatenation do. Loops around must move both alike.
static bool areApart(const LaneLayout &a, const LaneLayout &b, int64_t count) {
  if (ArrayRef(a.moves).drop_front() != ArrayRef(b.moves).drop_front())
    return false;
  const int64_t element = elementBytes(a.element);
  const auto bytesOf = [&](const LaneLayout &view) {
    SmallVector<std::pair<int64_t, int64_t>> dims; // size and stride, those of iterations too
    for (auto [size, stride] : view.dims)
      dims.emplace_back(size, stride * element);
    if (view.moves.front() != 0 && count > 1)
      dims.emplace_back(count, std::abs(view.moves.front()));
    return dims;
  };
  const auto firstOf = [&](const LaneLayout &view) {
    return view.bytes + std::min<int64_t>(view.moves.front(), 0) * (count - 1);
  };
  const SmallVector<std::pair<int64_t, int64_t>> ofA = bytesOf(a), ofB = bytesOf(b);
  // Where in each period of so many bytes a view lies; nullopt: not at one place in all.
  const auto partOf = [&](const LaneLayout &view, ArrayRef<std::pair<int64_t, int64_t>> dims,
                          int64_t period) -> std::optional<std::pair<int64_t, int64_t>> {
    int64_t size = element;
    for (auto [times, stride] : dims)
      if (stride % period != 0)
        size += (times - 1) * stride;
    const int64_t begin = firstOf(view) % period; // the lowest place of a buffer is 0
    return begin <= period - size ? std::optional(std::pair(begin, begin + size)) : std::nullopt;
  };
  SmallVector<int64_t> periods{std::numeric_limits<int64_t>::max()};
  for (ArrayRef dims : {ArrayRef(ofA), ArrayRef(ofB)})
    for (auto [size, stride] : dims)
      periods.push_back(stride);
  return llvm::any_of(periods, [&](int64_t period) {
    if (period == 0)
      return false;
    const auto x = partOf(a, ofA, period), y = partOf(b, ofB, period);
    return x && y && (x->second <= y->first || y->second <= x->first);
  });
}

/// Of all pairs.
static bool areApart(ArrayRef<LaneLayout> views, int64_t count) {
  for (size_t i = 0; i < views.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (!areApart(views[i], views[k], count))
        return false;
  return true;
}

bool canBeSliced(LoopOp loop, int64_t slices) {
  struct Buffer {
    bool shared = false, apart = true;
    DenseSet<Value> read, written;
  };
  DenseMap<Operation *, Buffer> buffers;
  for (Operation &op : loop.getBody().front()) {
    if (isa<BufferOp, ViewOp>(op))
      continue;
    auto step = dyn_cast<StepInterface>(op);
    if (!step)
      return false;
    FailureOr<SmallVector<unsigned>> sliced = step.slicedDimensions(slices);
    if (failed(sliced))
      return false;
    for (auto [value, access, dimensions] :
         llvm::zip(step.getArgs(), step.getAccesses(), *sliced)) {
      Buffer &buffer = buffers[placeOf(value).buffer];
      if (access != kWrite)
        buffer.read.insert(value);
      if (access != kRead)
        buffer.written.insert(value);
      buffer.shared |= dimensions == 0;
      buffer.apart &= liesInOwnPart(value, dimensions, slices);
    }
  }
  // What is written must be each slice's own: by lying in its part of the buffer, or because it is
  // read, if at all, as it was written, and what is written in several ways are parts that are
  // apart.
  return llvm::all_of(buffers, [&](const auto &entry) {
    const Buffer &b = entry.second;
    const auto isWritten = [&](Value value) { return b.written.contains(value); };
    if (b.written.empty() || (!b.shared && b.apart))
      return true;
    const auto layouts =
        llvm::map_to_vector(b.written, [&](Value value) { return laneLayoutOf(loop, value); });
    return !b.shared && llvm::all_of(b.read, isWritten) && areApart(layouts, loop.getCount());
  });
}

/// Whether the elements of a value in one iteration are never those of another.
static bool liesApart(LoopOp loop, Value value) {
  auto moving = llvm::find(loop.getMoving(), value);
  if (moving == loop.getMoving().end())
    return loop.getCount() == 1;
  MemRefType type = typeOf(value);
  const int64_t element = elementBytes(type.getElementType()),
                bytes = std::abs(loop.getStrides()[moving - loop.getMoving().begin()]);
  if (bytes % element != 0)
    return false;
  SmallVector<std::pair<int64_t, int64_t>> dimensions{{bytes / element, loop.getCount()}};
  for (auto [size, stride] : llvm::zip(type.getShape(), stridesOf(type)))
    dimensions.emplace_back(stride, size);
  llvm::sort(dimensions);
  int64_t last = 0; // the farthest element that smaller strides reach
  for (auto [stride, size] : dimensions) {
    if (size > 1 && stride <= last)
      return false;
    last += (size - 1) * stride;
  }
  return true;
}

bool areIterationsApart(LoopOp loop) {
  struct Buffer {
    bool written = false;
    DenseSet<Value> values;
  };
  DenseMap<Operation *, Buffer> outside;
  for (Operation &op : loop.getBody().front()) {
    if (isa<BufferOp, ViewOp>(op))
      continue;
    if (!isa<StepInterface>(op))
      return false;
    for (const BufferUse &use : usesOf(&op)) {
      BufferOp buffer = placeOf(use.value).buffer;
      if (buffer->getBlock() == &loop.getBody().front())
        continue;
      outside[buffer].written |= use.writes;
      outside[buffer].values.insert(use.value);
    }
  }
  return llvm::all_of(outside, [&](const auto &entry) {
    const Buffer &buffer = entry.second;
    return !buffer.written ||
           (buffer.values.size() == 1 && liesApart(loop, *buffer.values.begin()));
  });
}

//===-- Lanes -------------------------------------------------------------------------------===//

/// Whether every number of a group's results is made of numbers at its own row and column.
static bool isNumberByNumber(FusedOp group) {
  return llvm::all_of(group.getBlock().without_terminator(), [](Operation &op) {
    auto rowWise = dyn_cast<RowWiseOpInterface>(op);
    if (!rowWise)
      return isa<ReshapeOp, BroadcastOp>(op);
    return !rowWise.rowDimensions() &&
           llvm::none_of(llvm::seq(op.getNumOperands()),
                         [&](unsigned i) { return rowWise.needsOuterOperand(i); }) &&
           llvm::none_of(llvm::seq(op.getNumResults()),
                         [&](unsigned i) { return rowWise.sumsOverRows(i); });
  });
}

/// The numbers that a step makes, if lanes can make them one by one.
static std::optional<int64_t> numbersOf(Operation *op) {
  if (hasEightBits(op->getOperands()))
    return std::nullopt;
  if (auto copy = dyn_cast<CopyOp>(op))
    return typeOf(copy.getFrom()).getElementType() == typeOf(copy.getTo()).getElementType()
               ? std::optional(typeOf(copy.getTo()).getNumElements())
               : std::nullopt;
  auto launch = dyn_cast<LaunchOp>(op);
  if (!launch || launch.getLimit())
    return std::nullopt;
  auto kernel = op->getParentOfType<PlanModuleOp>().lookupSymbol<KernelOp>(launch.getKernelAttr());
  auto groups = kernel.getBody().getOps<FusedOp>();
  if (groups.empty() || launch.getArgs().size() != kernel.getLayouts().size() ||
      !isNumberByNumber(*groups.begin()))
    return std::nullopt;
  const RowDomain domain = (*groups.begin()).getDomain();
  for (Value arg : launch.getArgs())
    if (!formOfShape(domain, typeOf(arg).getShape()))
      return std::nullopt;
  return domain.rows() * domain.columns();
}

std::optional<int64_t> lanesOf(LoopOp loop) {
  struct Buffer {
    bool whole = true;
    SmallVector<LaneLayout, 1> read, written;
  };
  llvm::MapVector<Operation *, Buffer> buffers;
  std::optional<int64_t> lanes;
  for (Operation &op : loop.getBody().front()) {
    if (isa<BufferOp, ViewOp>(op))
      continue;
    const std::optional<int64_t> numbers = numbersOf(&op);
    if (!numbers || (lanes && *lanes != *numbers))
      return std::nullopt;
    lanes = numbers;
    auto step = cast<StepInterface>(op);
    for (auto [arg, access] : llvm::zip(step.getArgs(), step.getAccesses())) {
      Buffer &buffer = buffers[placeOf(arg).buffer];
      buffer.whole &= typeOf(arg).getNumElements() == *numbers;
      const LaneLayout layout = laneLayoutOf(loop, arg);
      if (access != kWrite && !llvm::is_contained(buffer.read, layout))
        buffer.read.push_back(layout);
      if (access != kRead && !llvm::is_contained(buffer.written, layout))
        buffer.written.push_back(layout);
    }
  }
  // Where a buffer is written in several ways, those must be parts of a result that are apart.
  const bool apart = llvm::all_of(buffers, [&](const auto &entry) {
    const Buffer &b = entry.second;
    const auto isWritten = [&](const LaneLayout &view) {
      return llvm::is_contained(b.written, view);
    };
    return b.written.empty() ||
           (b.whole && llvm::all_of(b.read, isWritten) && areApart(b.written, loop.getCount()));
  });
  return apart ? lanes : std::nullopt;
}

} // namespace hydra::plan
