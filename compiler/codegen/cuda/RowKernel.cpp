// Code for groups of row-wise operations, thread by thread: shapes, rows and chunks.
#include "compiler/codegen/cuda/RowKernelEmitter.h"
#include "runtime/support/Integers.h"

using namespace llvm;

namespace hydra::cuda {

using rows::emitIf;
using rows::RowSchedule;
using rows::Strided;
using rows::TensorAccess;
using support::ceilDiv;
using support::roundUp;
using Kind = RowNode::Kind;

namespace {

constexpr int64_t kMostThreads = 1024;
constexpr int64_t kFlatThreads = 256;
constexpr int64_t kKeptChunks = 4; ///< that a thread holds in registers
/// Threads of a block at most, for a multiprocessor's 65536 registers to have room for two blocks
/// with 96 a thread, in which sums, the row and the next one fit.
constexpr int64_t kThreadsOfPair = 65536 / 2 / 96;
/// Chunks of a thread with more whose loads are in flight at a time. Two blocks of 512 threads, for
/// rows that shared memory holds, have 64 registers a thread, in which three have room.
constexpr int64_t kUnroll = 4, kHeldUnroll = 3, kHeldThreads = 512;

/// Whether every element of the domain takes four bytes.
template <typename T> bool isWide(const T &tensor) {
  return tensor.form == RowForm::Tile && storageBytes(tensor.type) > 2;
}

} // namespace

RowKernelEmitter::RowKernelEmitter(Function *function, const RowProgram &program,
                                   ArrayRef<Strides> layouts, ArrayRef<int64_t> alignments,
                                   int64_t grain, int64_t counted, const RowThreads &threads)
    : function(function), s(rows::scheduleRows(program, layouts, grain)),
      b(BasicBlock::Create(function->getContext(), "entry", function)), math(b), grain(grain),
      counted(counted), threads(threads) {
  size_t next = 0;
  for (size_t i = 0; i < s.inputs.size(); ++i)
    inputAlignment.push_back(alignments[next++]);
  for (const RowResult &result : s.program.results)
    resultAlignment.push_back(s.program.isSummed(result) ? 4 : alignments[next++]);
}

LaunchShape RowKernelEmitter::emit() {
  chooseShape();
  bindArguments();
  thread = specialRegister(b, Intrinsic::nvvm_read_ptx_sreg_tid_x);
  block = specialRegister(b, Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  for (auto [i, node] : enumerate(s.program.nodes))
    if (node.form == RowForm::Scalar && node.kind != Kind::SumRows)
      scalars[i] = evaluate(i);
  if (s.flat)
    emitFlat();
  else if (hasReductions || hasSums)
    emitRows();
  else
    emitTiles();
  b.CreateRetVoid();
  return shape;
}

//===-- Shape -------------------------------------------------------------------------------===//

void RowKernelEmitter::chooseShape() {
  hasReductions = s.sweeps.size() > 1;
  hasSums = any_of(s.program.results, [&](const RowResult &r) { return s.program.isSummed(r); });
  columns = s.flat ? s.rows * s.columns : s.columns;
  width = any_of(s.program.inputs, isWide<RowInput>) || any_of(s.program.results, isWide<RowResult>)
              ? 4
              : 8;
  while (columns % width != 0)
    width /= 2;
  for (const RowNode &node : s.program.nodes) {
    if (node.kind != Kind::Rotate)
      continue;
    int64_t head = s.program.domain.innerShape.back();
    while ((node.rotation.halfSplit ? head / 2 : head) % width != 0)
      width /= 2;
  }
  chunks = columns / width;
  if (s.flat) {
    shape.threads = kFlatThreads;
    shape.blocks = hasSums ? ceilDiv(s.rows, grain) : ceilDiv(chunks, kFlatThreads);
  } else if (hasReductions || hasSums) {
    // Of a row; sums and the next row take their share of the registers.
    int64_t each = chunks > kMostThreads           ? kKeptChunks
                   : hasSums                       ? (chunks <= kMostThreads / 2 - kWarp ? 1 : 2)
                   : chunks <= kKeptChunks * kWarp ? ceilDiv(chunks, kWarp)
                                                   : 2;
    team = roundUp(ceilDiv(chunks, each), kWarp);
    if (!hasSums && chunks <= kWarp / 2) // several rows for a warp
      team = PowerOf2Ceil(chunks);
    inRegisters = team <= kMostThreads;
    if (!inRegisters && sumsColumnsAlone()) {
      team = kFlatThreads;
      parts = ceilDiv(chunks, team);
      inRegisters = true;
    } else if (!inRegisters) {
      holdInputs();
      team = heldAt.empty() ? threads.ofLongRow : threads.ofHeldRow;
      if (!heldAt.empty()) // others wait for memory
        oneColumns = oneColumnNodes();
    }
    kept = ceilDiv(chunks, team * parts);
    teams = team <= kWarp && !hasSums ? threads.ofShortRows / team : 1;
    shape.threads = team * teams;
    shape.blocks = (hasSums ? ceilDiv(s.rows, grain) : ceilDiv(s.rows, teams)) * parts;
    // While one block waits at its barriers, the other loads. Without sums, rows with a second
    // reduction hold what is made between both, and need more registers.
    if (inRegisters && kept > 1 && shape.threads <= kThreadsOfPair &&
        (hasSums || s.sweeps.size() <= 2))
      shape.minBlocks = 2;
  } else {
    shape.threads = std::min(kFlatThreads, roundUp(s.rows * chunks, kWarp));
    shape.blocks = ceilDiv(s.rows * chunks, shape.threads);
  }
  if (const int64_t room = threads.atOnce / shape.threads; counted > 0 && 0 < room) {
    takesTurns = room < shape.blocks;
    shape.blocks = std::min(shape.blocks, room);
  }
}

void RowKernelEmitter::forOwn(Value *index, Value *end, int64_t step,
                              llvm::function_ref<void(Value *)> body) {
  Type *type = index->getType();
  if (!takesTurns)
    return emitIf(b, b.CreateICmpULT(index, end), [&] { body(index); });
  rows::emitLoop(b, b.CreateZExt(index, b.getInt64Ty()), b.CreateZExt(end, b.getInt64Ty()), step,
                 {}, [&](Value *own, ArrayRef<Value *>) {
                   body(b.CreateTrunc(own, type));
                   return rows::Values();
                 });
}

bool RowKernelEmitter::sumsColumnsAlone() const {
  return hasSums && !hasReductions && all_of(s.program.results, [&](const RowResult &result) {
           return !s.program.isSummed(result) || isColumnSum(result);
         });
}

void RowKernelEmitter::bindArguments() {
  SmallVector<Value *> arguments = kernelArguments(b, function);
  unsigned next = 0;
  for (size_t i = 0; i < s.inputs.size(); ++i)
    inputs.push_back(arguments[next++]);
  results.resize(s.results.size());
  for (auto [i, result] : enumerate(s.program.results))
    if (!s.program.isSummed(result))
      results[i] = arguments[next++];
  for (auto [i, result] : enumerate(s.program.results))
    if (s.program.isSummed(result))
      results[i] = arguments[next++];
  if (counted == 0)
    return;
  // What is no number of rows stands for all: nothing behind the tensors is touched.
  Value *count = b.CreateLoad(b.getInt32Ty(), arguments[next]);
  Value *most = b.getInt32(s.rows / counted);
  countedRows =
      b.CreateMul(b.CreateSelect(b.CreateICmpULT(count, most), count, most), b.getInt32(counted));
}

//===-- The three shapes --------------------------------------------------------------------===//

void RowKernelEmitter::emitFlat() {
  Value *threadWide = b.CreateZExt(thread, b.getInt64Ty());
  if (!hasSums) {
    Value *index = b.CreateAdd(
        b.CreateMul(b.CreateZExt(block, b.getInt64Ty()), b.getInt64(kFlatThreads)), threadWide);
    bool exact = chunks % kFlatThreads == 0 && !countedRows;
    auto body = [&](Value *own) {
      Chunk chunk{b.CreateMul(own, b.getInt64(width)), nullptr, nullptr};
      storeTiles(chunk);
    };
    if (exact) {
      body(index);
      return;
    }
    Value *all = b.getInt64(chunks);
    if (countedRows) { // the last chunk may begin in one row and end in the next
      Value *elements =
          b.CreateMul(b.CreateZExt(countedRows, b.getInt64Ty()), b.getInt64(s.columns));
      all = b.CreateUDiv(b.CreateAdd(elements, b.getInt64(width - 1)), b.getInt64(width));
    }
    forOwn(index, all, shape.blocks * kFlatThreads, body);
    return;
  }
  // The elements of a grain, one chunk of each thread after the other.
  std::vector<AllocaInst *> sums = makeSums(1);
  int64_t grainElements = grain * s.columns;
  Value *first = b.CreateMul(b.CreateZExt(block, b.getInt64Ty()), b.getInt64(grainElements));
  Value *end = b.CreateAdd(first, b.getInt64(grainElements));
  Value *all = b.getInt64(columns);
  end = b.CreateSelect(b.CreateICmpULT(end, all), end, all);
  // Chunks may not cross the end of a grain.
  bool split = grainElements % width != 0;
  int64_t step = split ? 1 : width, saved = width;
  width = step;
  Value *from = b.CreateAdd(first, b.CreateMul(threadWide, b.getInt64(step)));
  rows::emitLoop(b, from, end, kFlatThreads * step, {}, [&](Value *element, ArrayRef<Value *>) {
    tiles.clear();
    Chunk chunk{element, nullptr, nullptr};
    storeTiles(chunk);
    addSums(sums, chunk);
    return rows::Values();
  });
  width = saved;
  team = kFlatThreads;
  for (auto [i, result] : enumerate(s.program.results))
    if (s.program.isSummed(result))
      storeScalarSum(i, reduceTeam(RowReduction::Sum, load(sums[i])));
}

void RowKernelEmitter::emitTiles() {
  Value *index = b.CreateAdd(b.CreateMul(block, b.getInt32(shape.threads)), thread);
  forOwn(index, b.CreateMul(rowsThere(), b.getInt32(chunks)), shape.blocks * shape.threads,
         [&](Value *own) {
           Value *row = b.CreateUDiv(own, b.getInt32(chunks));
           Value *column = b.CreateMul(b.CreateURem(own, b.getInt32(chunks)), b.getInt32(width));
           enterRow(row);
           for (unsigned node : s.sweeps.front().rowNodes)
             evaluateRow(node);
           storeTiles({column, row, nullptr});
           storeRowResults(b.CreateICmpEQ(column, b.getInt32(0)));
         });
}

void RowKernelEmitter::emitRows() {
  lane = b.CreateAnd(thread, b.getInt32(kWarp - 1));
  inTeam = teams > 1 ? b.CreateURem(thread, b.getInt32(team)) : thread;
  if (parts > 1) {
    Value *part = b.CreateURem(block, b.getInt32(parts));
    inTeam = b.CreateAdd(b.CreateMul(part, b.getInt32(team)), thread);
    block = b.CreateUDiv(block, b.getInt32(parts));
  }
  if (!hasSums) {
    Value *row = block;
    if (teams > 1)
      row = b.CreateAdd(b.CreateMul(block, b.getInt32(teams)),
                        b.CreateUDiv(thread, b.getInt32(team)));
    if (s.rows % teams == 0 && !countedRows) {
      emitRow(row, {});
      return;
    }
    // Of a warp. All its lanes run reductions; those behind the last row store nothing.
    Value *behind = team < kWarp ? b.CreateUDiv(lane, b.getInt32(team)) : b.getInt32(0);
    forOwn(b.CreateSub(row, behind), rowsThere(), shape.blocks * teams, [&](Value *first) {
      Value *own = first;
      if (team < kWarp) {
        own = b.CreateAdd(first, behind);
        rowValid = b.CreateICmpULT(own, rowsThere());
        own = b.CreateSelect(rowValid, own, first);
      }
      emitRow(own, {});
      if (takesTurns && hasReductions && team > kWarp)
        barrier(); // before anyone writes the shared memory of the next row
    });
    return;
  }
  std::vector<AllocaInst *> sums = makeSums(inRegisters ? kept * width : 1);
  Value *first = b.CreateMul(b.CreateZExt(block, b.getInt64Ty()), b.getInt64(grain));
  Value *end = b.CreateAdd(first, b.getInt64(grain)), *all = b.getInt64(s.rows);
  end = b.CreateSelect(b.CreateICmpULT(end, all), end, all);
  Value *firstRow = b.CreateTrunc(first, b.getInt32Ty());
  if (inRegisters)
    keepColumns();
  if (inRegisters)
    prefetch(firstRow);
  rows::emitLoop(b, first, end, 1, {}, [&](Value *row, ArrayRef<Value *>) {
    Value *number = b.CreateTrunc(row, b.getInt32Ty());
    isFirstRow = b.CreateICmpEQ(number, firstRow);
    if (inRegisters) {
      takePrefetched();
      Value *next = b.CreateAdd(number, b.getInt32(1));
      prefetch(
          b.CreateSelect(b.CreateICmpULT(next, b.CreateTrunc(end, b.getInt32Ty())), next, number));
    }
    emitRow(number, sums);
    if (hasReductions && team > kWarp)
      barrier(); // before anyone writes the shared memory of the next row
    return rows::Values();
  });
  for (auto [i, result] : enumerate(s.program.results)) {
    if (!s.program.isSummed(result))
      continue;
    if (!isColumnSum(result))
      storeScalarSum(i, load(sums[i]));
    else if (inRegisters)
      storeColumnSums(i, sums[i]);
  }
}

void RowKernelEmitter::emitRow(Value *row, ArrayRef<AllocaInst *> sums) {
  enterRow(row);
  for (auto [p, sweep] : enumerate(s.sweeps)) {
    for (unsigned node : sweep.rowNodes)
      if (s.program.nodes[node].kind != Kind::Reduce)
        evaluateRow(node);
    if (sweep.reductions.empty())
      continue;
    reduceRow(row, sweep.reductions);
  }
  if (hasColumnResults())
    forChunks(row, [&](const Chunk &chunk) {
      storeTiles(chunk);
      addColumnSums(sums, chunk);
    });
  storeRowResults(b.CreateICmpEQ(inTeam, b.getInt32(0)));
  for (auto [i, result] : enumerate(s.program.results))
    if (s.program.isSummed(result) && !isColumnSum(result))
      store(b.CreateFAdd(load(sums[i]), evaluateRow(s.program.nodes[result.node].inputs[0])),
            sums[i]);
}

void RowKernelEmitter::reduceRow(Value *row, ArrayRef<unsigned> reductions) {
  struct Partial {
    unsigned node;
    std::optional<unsigned> exponentials; ///< the sum that is done with this maximum
    AllocaInst *memory, *sum;
  };
  std::vector<Partial> partials;
  for (unsigned node : reductions) {
    if (rowValues.count(node))
      continue;
    Partial partial{node, inRegisters ? std::nullopt : exponentialsOf(node), allocate(1),
                    allocate(1)};
    store(identity(reductionOf(node)), partial.memory);
    store(identity(RowReduction::Sum), partial.sum);
    partials.push_back(partial);
  }
  if (partials.empty())
    return;
  forChunks(row, [&](const Chunk &chunk) {
    for (const Partial &p : partials) {
      unsigned tile = s.program.nodes[p.node].inputs[0];
      if (p.exponentials)
        accumulateExponentials(p.memory, p.sum, tile, chunk);
      else
        accumulate(reductionOf(p.node), p.memory, tile, chunk);
    }
  });
  for (const Partial &p : partials) {
    Value *own = load(p.memory), *all = reduceTeam(reductionOf(p.node), own);
    rowValues[p.node] = all;
    if (p.exponentials)
      rowValues[*p.exponentials] = reduceTeam(
          RowReduction::Sum, b.CreateFMul(load(p.sum), exponential(own, finiteBase(all))));
  }
}

std::optional<unsigned> RowKernelEmitter::exponentialsOf(unsigned maximum) const {
  const auto &nodes = s.program.nodes;
  auto is = [&](unsigned node, Kind kind, auto code) {
    return nodes[node].kind == kind && nodes[node].code == static_cast<unsigned>(code);
  };
  if (!is(maximum, Kind::Reduce, RowReduction::Max))
    return std::nullopt;
  for (auto [i, node] : enumerate(nodes)) {
    if (!is(i, Kind::Reduce, RowReduction::Sum) || !is(node.inputs[0], Kind::Unary, RowUnary::Exp))
      continue;
    unsigned difference = nodes[node.inputs[0]].inputs[0];
    if (is(difference, Kind::Binary, RowBinary::Sub) &&
        nodes[difference].inputs[0] == nodes[maximum].inputs[0] &&
        nodes[difference].inputs[1] == maximum)
      return i;
  }
  return std::nullopt;
}

Value *RowKernelEmitter::finiteBase(Value *maximum) {
  Value *none = b.CreateFCmpOEQ(maximum, identity(RowReduction::Max));
  return b.CreateSelect(none, ConstantFP::get(b.getFloatTy(), 0.0), maximum);
}

Value *RowKernelEmitter::exponential(Value *x, Value *base) {
  return math.unary(RowUnary::Exp, b.CreateFSub(x, base));
}

void RowKernelEmitter::accumulateExponentials(AllocaInst *maximum, AllocaInst *sum, unsigned tile,
                                              const Chunk &chunk) {
  SmallVector<Value *> values = evaluateTile(tile, chunk);
  Value *before = load(maximum), *now = before;
  for (Value *value : values)
    now = math.max(now, value);
  Value *base = finiteBase(now);
  Value *total = b.CreateFMul(load(sum), exponential(before, base));
  for (Value *value : values)
    total = b.CreateFAdd(total, exponential(value, base));
  if (chunk.valid) {
    now = b.CreateSelect(chunk.valid, now, before);
    total = b.CreateSelect(chunk.valid, total, load(sum));
  }
  store(now, maximum);
  store(total, sum);
}

int64_t RowKernelEmitter::unroll() const { return heldAt.empty() ? kUnroll : kHeldUnroll; }

void RowKernelEmitter::forChunks(Value *row, function_ref<void(const Chunk &)> body) {
  if (inRegisters) {
    for (int64_t k = 0; k < kept; ++k)
      body(keptChunk(row, k));
    return;
  }
  Value *from = b.CreateZExt(inTeam, b.getInt64Ty());
  int64_t step = team * unroll(), whole = chunks / step * step;
  for (const OneColumn &one : oneColumns)
    evaluateRow(one.column);
  rows::emitLoop(b, from, b.getInt64(whole), step, {}, [&](Value *index, ArrayRef<Value *>) {
    Value *first = b.CreateTrunc(index, b.getInt32Ty());
    withoutOneColumns(first, [&] {
      tiles.clear();
      for (int64_t k = 0; k < unroll(); ++k)
        body(chunkOf(row, b.CreateAdd(first, b.getInt32(k * team)), k, /*guarded=*/false));
    });
    return rows::Values();
  });
  tiles.clear();
  for (int64_t first = whole; first < chunks; first += team)
    body(chunkOf(row, b.CreateAdd(inTeam, b.getInt32(first)), (first - whole) / team,
                 first + team > chunks));
  tiles.clear();
  inShared.merge(arriving);
  arriving.clear();
}

std::vector<SmallVector<unsigned>> RowKernelEmitter::wantedOfSweeps() const {
  std::vector<SmallVector<unsigned>> all;
  std::set<unsigned> known;
  for (const auto &sweep : s.sweeps) {
    SmallVector<unsigned> wanted;
    for (const unsigned node : sweep.reductions) {
      if (known.contains(node))
        continue;
      wanted.push_back(s.program.nodes[node].inputs[0]);
      if (const std::optional<unsigned> sum = exponentialsOf(node))
        known.insert(*sum);
    }
    if (!wanted.empty())
      all.push_back(std::move(wanted));
  }
  SmallVector<unsigned> wanted;
  for (const RowResult &result : s.program.results)
    wanted.push_back(result.node);
  all.push_back(std::move(wanted));
  return all;
}

std::set<unsigned> RowKernelEmitter::tileInputsOf(ArrayRef<unsigned> wanted) const {
  std::vector<bool> needed(s.program.nodes.size(), false);
  for (const unsigned node : wanted)
    needed[node] = true;
  std::set<unsigned> inputs;
  for (size_t i = needed.size(); i-- > 0;) {
    const RowNode &node = s.program.nodes[i];
    // What is summed over rows is a result, with or without columns.
    if (!needed[i] || (!variesOverColumns(node.form) && node.kind != Kind::SumRows))
      continue;
    if (node.kind == Kind::Input)
      inputs.insert(node.code);
    for (const unsigned input : node.inputs)
      needed[input] = true;
  }
  return inputs;
}

void RowKernelEmitter::holdInputs() {
  std::map<unsigned, int> times;
  for (const SmallVector<unsigned> &wanted : wantedOfSweeps())
    for (const unsigned input : tileInputsOf(wanted))
      ++times[input];
  int64_t bytes = 0;
  for (const auto &[input, count] : times) {
    const unsigned each = storageBytes(s.program.inputs[input].type);
    if (count < 2 || s.program.inputs[input].form != RowForm::Tile || isGathered(input) ||
        !isVector(s.inputs[input], width, each, inputAlignment[input]))
      continue;
    heldAt[input] = bytes;
    bytes += roundUp(chunks, threads.ofHeldRow) * width * each; // a place for each thread
  }
  if (bytes > threads.heldBytes)
    heldAt.clear();
  if (heldAt.empty())
    return;
  held = new GlobalVariable(*function->getParent(), ArrayType::get(b.getInt8Ty(), 0), false,
                            GlobalValue::ExternalLinkage, nullptr, function->getName() + "_held",
                            nullptr, GlobalValue::NotThreadLocal, kSharedMemory);
  held->setAlignment(Align(16));
  shape.sharedBytes = bytes;
  if (threads.ofHeldRow <= kHeldThreads)
    shape.minBlocks = 2;
}

std::vector<RowKernelEmitter::OneColumn> RowKernelEmitter::oneColumnNodes() const {
  const RowDomain &domain = s.program.domain;
  const auto isColumn = [&](const RowNode &node) {
    return node.kind == Kind::Index && node.code >= domain.rowShape.size() &&
           domain.innerShape[node.code - domain.rowShape.size()] == s.columns;
  };
  std::vector<OneColumn> found;
  for (auto [i, node] : enumerate(s.program.nodes)) {
    if (node.kind != Kind::Compare || static_cast<Predicate>(node.code) != Predicate::eq)
      continue;
    for (const auto [column, said] : {std::pair(0, 1), std::pair(1, 0)})
      if (isColumn(s.program.nodes[node.inputs[column]]) && s.level[node.inputs[said]] == 0 &&
          !variesOverColumns(s.program.nodes[node.inputs[said]].form))
        found.push_back({static_cast<unsigned>(i), node.inputs[said]});
  }
  return found;
}

void RowKernelEmitter::withoutOneColumns(Value *first, function_ref<void()> body) {
  if (oneColumns.empty())
    return body();
  Value *any = b.getFalse();
  for (const OneColumn &one : oneColumns) { // a number below 0 is none of a chunk
    Value *chunk = b.CreateUDiv(evaluateRow(one.column), b.getInt32(width));
    for (int64_t k = 0; k < unroll(); ++k)
      any = b.CreateOr(any, b.CreateICmpEQ(chunk, b.CreateAdd(first, b.getInt32(k * team))));
  }
  // A row value that one branch computes is not known in the other.
  const std::map<unsigned, Value *> known = rowValues;
  const auto make = [&](bool none) {
    noneOfThem = none;
    body();
    noneOfThem = false;
    rowValues = known;
  };
  rows::emitIf(b, any, [&] { make(false); }, [&] { make(true); });
}

Chunk RowKernelEmitter::keptChunk(Value *row, int64_t k) {
  return chunkOf(row, b.CreateAdd(inTeam, b.getInt32(k * team)), k,
                 (k + 1) * team * parts > chunks);
}

Chunk RowKernelEmitter::chunkOf(Value *row, Value *index, unsigned number, bool guarded) {
  Value *valid = nullptr, *place = b.CreateMul(index, b.getInt32(width));
  if (guarded) {
    valid = b.CreateICmpULT(index, b.getInt32(chunks));
    index = b.CreateSelect(valid, index, b.getInt32(0));
  }
  if (rowValid)
    valid = valid ? b.CreateAnd(valid, rowValid) : rowValid;
  return {b.CreateMul(index, b.getInt32(width)), row, valid, number, place};
}

void RowKernelEmitter::enterRow(Value *row) {
  currentRow = row;
  rowValues.clear();
  tiles.clear();
  inShared.clear();
  auto offset = [&](Value *base, const TensorAccess &access, RowType type) {
    return elementPointer(base, offsetOf(access.rows, row), type);
  };
  inputRows.clear();
  for (auto [i, base] : enumerate(inputs))
    inputRows.push_back(isGathered(i) ? base : offset(base, s.inputs[i], s.program.inputs[i].type));
  resultRows.clear();
  for (auto [i, base] : enumerate(results))
    resultRows.push_back(s.program.isSummed(s.program.results[i])
                             ? base
                             : offset(base, s.results[i], s.program.results[i].type));
}

bool RowKernelEmitter::isGathered(unsigned input) const {
  return any_of(s.program.nodes, [&](const RowNode &node) {
    return node.kind == Kind::Gather && node.code == input;
  });
}

//===-- Entry -------------------------------------------------------------------------------===//

SmallVector<Value *> kernelArguments(IRBuilderBase &b, Function *function) {
  SmallVector<Value *> arguments;
  Type *table = function->getParamByValType(0);
  if (!table) {
    for (Argument &argument : function->args())
      arguments.push_back(&argument);
    return arguments;
  }
  constexpr unsigned globalMemory = 1;
  Type *global = PointerType::get(b.getContext(), globalMemory);
  Value *instance = specialRegister(b, Intrinsic::nvvm_read_ptx_sreg_ctaid_y);
  for (uint64_t i = 0; i < table->getArrayElementType()->getArrayNumElements(); ++i) {
    Value *entry =
        b.CreateInBoundsGEP(table, function->getArg(0), {b.getInt32(0), instance, b.getInt32(i)});
    arguments.push_back(b.CreateAddrSpaceCast(b.CreateLoad(global, entry), b.getPtrTy()));
  }
  return arguments;
}

LaunchShape emitRowKernel(Function *function, const RowProgram &program, ArrayRef<Strides> layouts,
                          ArrayRef<int64_t> alignments, int64_t grain, int64_t counted,
                          const RowThreads &threads) {
  return RowKernelEmitter(function, program, layouts, alignments, grain, counted, threads).emit();
}

unsigned argumentCount(const RowProgram &program) {
  return program.inputs.size() + program.results.size();
}

} // namespace hydra::cuda
