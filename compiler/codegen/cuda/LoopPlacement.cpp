// Where the tensors of a loop's kernel lie: which of a slice are in shared memory, and how.
#include "compiler/codegen/cuda/LoopPlacement.h"

#include "compiler/codegen/cuda/StepLauncher.h"
#include "dialects/plan/Slices.h"

using namespace mlir;

namespace hydra::cuda {

SmallVector<int64_t> LoopBuffer::strides(MemRefType type) const {
  SmallVector<int64_t> strides = plan::stridesOf(type);
  if (row)
    for (int64_t &stride : strides)
      if (stride % row == 0)
        stride = stride / row * (row + kLoopPad);
  return strides;
}

LoopPlacement::LoopPlacement(plan::LoopOp loop, ArrayRef<LoopStep> steps, int64_t mostShared)
    : loop(loop), steps(steps), slices(*loop.getSlices()), arena(mostShared) {
  place();
}

/// Registers of a thread that carried matrices may take.
static constexpr int64_t kMostHeld = 32;

/// Whether every number of a group's results depends on the same number of its only input.
static bool isNumberByNumber(const LoopStep &step, Value arg) {
  using Kind = RowNode::Kind;
  const ArrayRef<int64_t> shape = typeOf(arg).getShape();
  return step.program && step.program->inputs.size() == 1 && step.args[0] == arg &&
         llvm::none_of(step.program->nodes,
                       [](const RowNode &node) {
                         return node.kind == Kind::Reduce || node.kind == Kind::Index;
                       }) &&
         llvm::all_of(step.program->results,
                      [](const RowResult &result) { return isFloat(result.type); }) &&
         llvm::all_of(step.args, [&](Value other) { return typeOf(other).getShape() == shape; }) &&
         step.program->domain.columns() == shape.back();
}

std::optional<LoopRegisters> LoopPlacement::registersOf(plan::BufferOp buffer) const {
  std::optional<LoopRegisters> registers;
  bool multiplied = false;
  for (const LoopStep &step : steps)
    for (auto [i, arg] : llvm::enumerate(step.args)) {
      if (plan::placeOf(arg).buffer != buffer)
        continue;
      MemRefType type = typeOf(arg);
      if (!type.getElementType().isF32() || type.getRank() < 2 || step.sliced[i] == 0 ||
          plan::placeOf(arg).bytes != 0)
        return std::nullopt;
      const LoopRegisters own{type.getShape().end()[-2], type.getShape().back()};
      // The slice is that matrix, row by row.
      if (SmallVector<int64_t> strides = plan::stridesOf(type);
          plan::extentBytes(typeOf(buffer)) != slices * own.rows * own.columns * 4 ||
          strides.end()[-1] != 1 || strides.end()[-2] != own.columns)
        return std::nullopt;
      auto matmul = dyn_cast<plan::MatmulOp>(*step.op);
      const bool adds = matmul && i == 2 && matmul.getAccumulate() &&
                        typeOf(step.args[0]).getElementTypeBitWidth() == 16;
      if (!adds && !(i == 0 && !step.writes(i) && isNumberByNumber(step, arg)))
        return std::nullopt;
      multiplied |= adds;
      registers = own;
    }
  // Every warp has as many pieces of 16 x 16 numbers.
  if (!multiplied || registers->rows % 16 != 0 || registers->columns % 16 != 0 ||
      registers->rows * registers->columns % (256 * kLoopWarps) != 0)
    return std::nullopt;
  return registers;
}

std::vector<LoopPlacement::Part> LoopPlacement::findParts() {
  llvm::MapVector<Operation *, Part> found;
  DenseSet<Operation *> written, mixed; // mixed: slices have no parts of their own
  for (auto [number, step] : llvm::enumerate(steps))
    for (auto [i, arg] : llvm::enumerate(step.args)) {
      plan::BufferOp buffer = plan::placeOf(arg).buffer;
      Part &part = found[buffer];
      if (!part.buffer) {
        part.buffer = buffer;
        part.first = number;
        part.carried = buffer->getBlock() != &loop.getBody().front();
      }
      part.last = number;
      part.views.emplace_back(arg, step.sliced[i]);
      if (step.writes(i))
        written.insert(buffer);
      if (!plan::liesInOwnPart(arg, step.sliced[i], slices))
        mixed.insert(buffer);
    }
  std::vector<Part> parts;
  for (auto &[buffer, part] : found)
    if (written.contains(buffer) && !mixed.contains(buffer))
      parts.push_back(std::move(part));
  return parts;
}

void LoopPlacement::holdInRegisters(std::vector<Part> &parts) {
  int64_t registersLeft = kMostHeld;
  std::vector<Part> rest;
  for (Part &part : parts) {
    const std::optional<LoopRegisters> own = part.carried ? registersOf(part.buffer) : std::nullopt;
    const int64_t each = own ? own->rows * own->columns / kLoopThreads : 0;
    if (!own || each > registersLeft) {
      rest.push_back(std::move(part));
      continue;
    }
    registersLeft -= each;
    held.insert({part.buffer, *own});
  }
  parts = std::move(rest);
}

void LoopPlacement::placeParts(ArrayRef<Part> parts, bool ofCarried) {
  for (const Part &part : parts) {
    if (part.carried != ofCarried)
      continue;
    const std::optional<int64_t> at = part.carried
                                          ? arena.place(part.form.bytes)
                                          : arena.place(part.form.bytes, part.first, part.last);
    if (!at)
      continue;
    LoopBuffer &shared = inShared[part.buffer] = part.form;
    shared.begin = *at;
    if (part.carried)
      carried.push_back(part.buffer);
  }
}

void LoopPlacement::placeChunks(MutableArrayRef<LoopTile> chunks, bool ofMatmuls) {
  for (LoopTile &tile : chunks) {
    if (tile.ofMatmul != ofMatmuls)
      continue;
    if (std::optional<int64_t> at = arena.place(tile.bytes)) {
      tile.begin = *at;
      tiles.insert({tile.value, tile});
    } else if (tile.read) {
      left.push_back(tile);
    }
  }
}

void LoopPlacement::placeNextChunks() {
  for (bool ofMatmuls : {true, false})
    for (auto &[value, tile] : tiles)
      if (tile.ofMatmul == ofMatmuls && tile.read && !tile.written)
        tile.odd = arena.place(tile.bytes);
}

void LoopPlacement::place() {
  std::vector<Part> parts = findParts();
  holdInRegisters(parts);
  for (Part &part : parts)
    part.form = formOf(part.buffer, part.views);
  constexpr int64_t kPiece = 16; // bytes that threads move at once
  llvm::erase_if(parts, [](const Part &part) { return part.form.bytes % kPiece != 0; });
  llvm::stable_sort(parts,
                    [](const Part &a, const Part &b) { return a.form.bytes < b.form.bytes; });
  SmallVector<LoopTile> chunks = findChunks();

  if (llvm::any_of(chunks, [](const LoopTile &tile) { return tile.read; }))
    barrier = *arena.place(sizeof(uint64_t));
  int64_t reductions = 0; // by several warps
  for (const LoopStep &step : steps)
    if (step.program && warpsOfRow(step) > 1)
      reductions += step.program->reductions();
  if (reductions > 0)
    scratch = *arena.place(reductions * kReductionScratch);
  placeParts(parts, /*ofCarried=*/true);
  placeChunks(chunks, /*ofMatmuls=*/true);
  placeParts(parts, /*ofCarried=*/false);
  placeChunks(chunks, /*ofMatmuls=*/false);
  placeNextChunks();
}

/// Strides of a tile, row by row, where matmuls read columns with a pad behind each; false where it
/// cannot be moved in pieces.
static bool shape(LoopTile &tile) {
  MemRefType type = typeOf(tile.value);
  SmallVector<int64_t> old = plan::stridesOf(type);
  const int64_t element = elementBytes(type.getElementType());
  tile.strides.assign(old.size(), 0);
  int64_t next = 1, rows = 0;
  for (size_t d = old.size(); d-- > tile.sliced;) {
    const int64_t size = type.getDimSize(d);
    if (size > 1 && old[d] == 0)
      return false;
    tile.strides[d] = next;
    next *= size;
    if (size > 1 && rows++ == 0 && tile.ofMatmul)
      next += kLoopPad;
  }
  tile.bytes = next * element;
  // The innermost of several.
  size_t inner = old.size();
  while (inner > tile.sliced && type.getDimSize(inner - 1) == 1)
    --inner;
  return inner > tile.sliced && old[inner - 1] == 1 && type.getDimSize(inner - 1) >= 16 &&
         type.getDimSize(inner - 1) * element % 16 == 0;
}

/// Chunks that steps look at, and slice, in one way alone.
SmallVector<LoopTile> LoopPlacement::findChunks() {
  llvm::MapVector<Value, LoopTile> found;
  DenseMap<Operation *, DenseSet<Value>> views; // of a buffer
  DenseSet<Value> moving(loop.getMoving().begin(), loop.getMoving().end()), mixed;
  DenseSet<Operation *> written;
  DenseMap<Value, unsigned> slicing;
  for (auto [number, step] : llvm::enumerate(steps))
    for (auto [i, arg] : llvm::enumerate(step.args)) {
      views[plan::placeOf(arg).buffer].insert(arg);
      if (step.writes(i))
        written.insert(plan::placeOf(arg).buffer);
      if (slicing.try_emplace(arg, step.sliced[i]).first->second != step.sliced[i])
        mixed.insert(arg);
      if (!moving.contains(arg) || step.sliced[i] == 0)
        continue;
      LoopTile &tile = found[arg];
      tile.value = arg;
      tile.sliced = step.sliced[i];
      tile.ofMatmul |= isa<plan::MatmulOp>(step.op);
      if (step.reads(i)) {
        tile.read |= !tile.written;
        tile.used = true;
        tile.lastReader = number;
      }
      if (step.writes(i)) {
        tile.written = true;
        tile.lastWriter = number;
      }
    }
  SmallVector<LoopTile> chunks;
  for (auto &[value, tile] : found) {
    Operation *buffer = plan::placeOf(value).buffer;
    if (tile.used && (views[buffer].size() == 1 || !written.contains(buffer)) &&
        !mixed.contains(value) && shape(tile))
      chunks.push_back(tile);
  }
  llvm::stable_sort(chunks, [](const LoopTile &a, const LoopTile &b) { return a.bytes < b.bytes; });
  return chunks;
}

LoopBuffer LoopPlacement::formOf(plan::BufferOp buffer, const Views &views) const {
  MemRefType type = typeOf(buffer);
  const int64_t element = elementBytes(type.getElementType()),
                count = type.getNumElements() / slices;
  LoopBuffer dense{0, count * element, 0};
  const int64_t row = type.getRank() > 0 ? type.getShape().back() : 1;
  if (row < 16 || count % row != 0 || count == row || row * element % 16 != 0)
    return dense;
  // Views must not run from one row into the next.
  for (auto [view, sliced] : views) {
    MemRefType own = typeOf(view);
    SmallVector<int64_t> strides = plan::stridesOf(own);
    int64_t last = plan::placeOf(view).bytes / element % row;
    for (unsigned d = sliced; d < strides.size(); ++d)
      if (own.getDimSize(d) > 1 && strides[d] % row != 0)
        last += (own.getDimSize(d) - 1) * strides[d];
    if (last >= row)
      return dense;
  }
  return {0, count / row * (row + kLoopPad) * element, row};
}

const LoopTile *LoopPlacement::chunkOf(Value value) const {
  auto found = tiles.find(value);
  return found == tiles.end() ? nullptr : &found->second;
}

const LoopBuffer *LoopPlacement::sharedForm(Operation *buffer) const {
  auto found = inShared.find(buffer);
  return found == inShared.end() ? nullptr : &found->second;
}

bool LoopPlacement::isShared(Value value) const {
  return chunkOf(value) || sharedForm(plan::placeOf(value).buffer);
}

bool LoopPlacement::shareBytes(Operation *a, Operation *b) const {
  const LoopBuffer *x = sharedForm(a), *y = sharedForm(b);
  return x && y && x->begin < y->begin + y->bytes && y->begin < x->begin + x->bytes;
}

/// Columns of rows that a thread has the registers for.
static constexpr int64_t kMostOfThread = 16;

bool LoopPlacement::hasRowOfThread(const LoopStep &step) const {
  const RowProgram &program = *step.program;
  const int64_t columns = program.domain.columns(), dims = program.domain.rowShape.size();
  if (columns == 1 || columns > kMostOfThread || dims == 0 || program.domain.rowShape.back() < 32 ||
      held.contains(plan::placeOf(step.args[0]).buffer) ||
      llvm::any_of(program.results,
                   [](const RowResult &result) { return variesOverColumns(result.form); }))
    return false;
  bool any = false;
  for (auto [i, input] : llvm::enumerate(program.inputs)) {
    if (input.form != RowForm::Tile)
      continue;
    any = true;
    if (step.sliced[i] >= dims || stridesOf(step.args[i])[dims - 1] != 1)
      return false;
  }
  return any;
}

/// Columns that a lane has registers for where a warp has a row for itself.
static constexpr int64_t kMostOfLane = 16;

int64_t LoopPlacement::warpsOfRow(const LoopStep &step) const {
  const RowProgram &program = *step.program;
  const int64_t columns = program.domain.columns();
  int64_t rows = 1;
  for (int64_t size : ArrayRef(program.domain.rowShape)
                          .drop_front(*plan::leadingDimensions(program.domain.rowShape, slices)))
    rows *= size;
  const int64_t idle = kLoopWarps / static_cast<int64_t>(llvm::PowerOf2Ceil(rows));
  if (columns <= 32 * kMostOfLane || idle < 2 ||
      llvm::any_of(
          program.nodes, [](const RowNode &node) { return node.kind == RowNode::Kind::Rotate; }))
    return 1;
  // What one warp stores no other may still have to read.
  const size_t inputs = program.inputs.size();
  for (size_t i = 0; i < inputs; ++i)
    for (size_t r = inputs; r < step.args.size(); ++r)
      if (plan::placeOf(step.args[i]).buffer == plan::placeOf(step.args[r]).buffer &&
          (step.args[i] != step.args[r] || program.inputs[i].form != RowForm::Tile ||
           program.results[r - inputs].form != RowForm::Tile))
        return 1;
  return idle;
}

SmallVector<int64_t> LoopPlacement::stridesOf(Value value) const {
  if (const LoopTile *chunk = chunkOf(value))
    return chunk->strides;
  const LoopBuffer *shared = sharedForm(plan::placeOf(value).buffer);
  return shared ? shared->strides(typeOf(value)) : plan::stridesOf(typeOf(value));
}

/// The largest power of two that divides `bytes` and the strides of dimensions from `first` to
/// the last `inner`.
static int64_t rowAlignment(Value value, ArrayRef<int64_t> strides, unsigned first, unsigned inner,
                            int64_t bytes) {
  for (unsigned d = first; d + inner < strides.size(); ++d)
    if (typeOf(value).getDimSize(d) > 1)
      bytes |= strides[d] * elementBytes(typeOf(value).getElementType());
  return bytes & -bytes;
}

int64_t LoopPlacement::alignmentOf(Value value, unsigned inner) const {
  plan::Place place = plan::placeOf(value);
  const int64_t element = elementBytes(typeOf(value).getElementType());
  int64_t begin = 0; // in shared memory
  if (const LoopBuffer *shared = sharedForm(place.buffer))
    begin = shared->at(place.bytes / element) * element;
  else if (!chunkOf(value))
    return outsideAlignment(value, inner);
  unsigned first = *plan::leadingDimensions(typeOf(value).getShape(), slices);
  return rowAlignment(value, stridesOf(value), first, inner, SharedArena::kAlignment | begin);
}

int64_t LoopPlacement::outsideAlignment(Value value, unsigned inner) {
  return rowAlignment(value, plan::stridesOf(typeOf(value)), 0, inner, plan::alignmentOf(value));
}

} // namespace hydra::cuda
