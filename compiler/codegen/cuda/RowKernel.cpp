// Code for groups of row-wise operations, thread by thread.
#include "compiler/codegen/cuda/RowKernel.h"

#include "compiler/codegen/cpu/Loops.h"
#include "compiler/codegen/cpu/RowSchedule.h"
#include "compiler/codegen/cuda/DeviceMath.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

#include <cmath>

using namespace llvm;

namespace hydra::cuda {

using cpu::emitIf;
using cpu::RowSchedule;
using cpu::Strided;
using cpu::TensorAccess;
using Kind = RowNode::Kind;

namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kFlatThreads = 256;
constexpr int64_t kRowThreads = 128;     ///< of a block where a warp or less has a row
constexpr int64_t kKeptChunks = 4;       ///< that a thread holds in registers
constexpr int64_t kLongRowThreads = 512; ///< of a row that does not fit in registers
constexpr int64_t kUnroll = 4;           ///< loads of such a thread that are under way at a time

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

Value *specialRegister(IRBuilderBase &b, Intrinsic::ID id) {
  return b.CreateIntrinsic(id, ArrayRef<Type *>(), ArrayRef<Value *>());
}

/// Whether every element of the domain takes four bytes.
template <typename T> bool isWide(const T &tensor) {
  return tensor.form == RowForm::Tile && storageBytes(tensor.type) > 2;
}

/// Of a vector of so many bytes: longer ones are loaded as several.
Align vectorAlignment(int64_t bytes) { return Align(std::min<int64_t>(bytes, 16)); }

/// Elements of a tensor that lie side by side, and can be loaded as vectors.
bool isVector(const TensorAccess &access, int64_t width, unsigned bytes, int64_t alignment) {
  if (width == 1 || access.columns.dims.empty())
    return false;
  const Strided::Dim &inner = access.columns.dims.back();
  auto whole = [&](const Strided::Dim &dim) { return dim.stride % width == 0; };
  return inner.stride == 1 && inner.size % width == 0 &&
         alignment % vectorAlignment(width * bytes).value() == 0 &&
         llvm::all_of(ArrayRef(access.columns.dims).drop_back(), whole) &&
         llvm::all_of(access.rows.dims, whole);
}

/// Neighbouring columns of a row (in the flat shape: elements) that one thread works on.
struct Chunk {
  Value *column;       ///< first; i32, in the flat shape i64
  Value *row;          ///< i32; null in the flat shape
  Value *valid;        ///< whether they exist; null: always
  unsigned number = 0; ///< among those of the thread
};

class RowKernel {
public:
  RowKernel(Function *function, const RowProgram &program, ArrayRef<Strides> layouts,
            ArrayRef<int64_t> alignments, int64_t grain)
      : function(function), s(cpu::scheduleRows(program, layouts, grain)),
        b(BasicBlock::Create(function->getContext(), "entry", function)), math(b), grain(grain) {
    size_t next = 0;
    for (size_t i = 0; i < s.inputs.size(); ++i)
      inputAlignment.push_back(alignments[next++]);
    for (const RowResult &result : s.program.results)
      resultAlignment.push_back(s.program.isSummed(result) ? 4 : alignments[next++]);
  }

  LaunchShape emit() {
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

private:
  //===-- Shape -----------------------------------------------------------------------------===//

  void chooseShape() {
    hasReductions = s.sweeps.size() > 1;
    hasSums = any_of(s.program.results, [&](const RowResult &r) { return s.program.isSummed(r); });
    columns = s.flat ? s.rows * s.columns : s.columns;
    width =
        any_of(s.program.inputs, isWide<RowInput>) || any_of(s.program.results, isWide<RowResult>)
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
      if (!inRegisters)
        team = kLongRowThreads;
      kept = ceilDiv(chunks, team);
      teams = team <= kWarp && !hasSums ? kRowThreads / team : 1;
      shape.threads = team * teams;
      shape.blocks = hasSums ? ceilDiv(s.rows, grain) : ceilDiv(s.rows, teams);
    } else {
      shape.threads = std::min(kFlatThreads, roundUp(s.rows * chunks, kWarp));
      shape.blocks = ceilDiv(s.rows * chunks, shape.threads);
    }
  }

  void bindArguments() {
    unsigned next = 0;
    for (size_t i = 0; i < s.inputs.size(); ++i)
      inputs.push_back(function->getArg(next++));
    results.resize(s.results.size());
    for (auto [i, result] : enumerate(s.program.results))
      if (!s.program.isSummed(result))
        results[i] = function->getArg(next++);
    for (auto [i, result] : enumerate(s.program.results))
      if (s.program.isSummed(result))
        results[i] = function->getArg(next++);
  }

  //===-- The three shapes ------------------------------------------------------------------===//

  void emitFlat() {
    Value *threadWide = b.CreateZExt(thread, b.getInt64Ty());
    if (!hasSums) {
      Value *index = b.CreateAdd(
          b.CreateMul(b.CreateZExt(block, b.getInt64Ty()), b.getInt64(kFlatThreads)), threadWide);
      bool exact = chunks % kFlatThreads == 0;
      auto body = [&] {
        Chunk chunk{b.CreateMul(index, b.getInt64(width)), nullptr, nullptr};
        storeTiles(chunk);
      };
      if (exact)
        body();
      else
        emitIf(b, b.CreateICmpULT(index, b.getInt64(chunks)), body);
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
    cpu::emitLoop(b, from, end, kFlatThreads * step, {}, [&](Value *element, ArrayRef<Value *>) {
      tiles.clear();
      Chunk chunk{element, nullptr, nullptr};
      storeTiles(chunk);
      addSums(sums, chunk);
      return cpu::Values();
    });
    width = saved;
    team = kFlatThreads;
    for (auto [i, result] : enumerate(s.program.results))
      if (s.program.isSummed(result))
        storeScalarSum(i, reduceTeam(RowReduction::Sum, load(sums[i])));
  }

  void emitTiles() {
    Value *index = b.CreateAdd(b.CreateMul(block, b.getInt32(shape.threads)), thread);
    emitIf(b, b.CreateICmpULT(index, b.getInt32(s.rows * chunks)), [&] {
      Value *row = b.CreateUDiv(index, b.getInt32(chunks));
      Value *column = b.CreateMul(b.CreateURem(index, b.getInt32(chunks)), b.getInt32(width));
      enterRow(row);
      for (unsigned node : s.sweeps.front().rowNodes)
        evaluateRow(node);
      storeTiles({column, row, nullptr});
      storeRowResults(b.CreateICmpEQ(column, b.getInt32(0)));
    });
  }

  void emitRows() {
    lane = b.CreateAnd(thread, b.getInt32(kWarp - 1));
    inTeam = teams > 1 ? b.CreateURem(thread, b.getInt32(team)) : thread;
    if (!hasSums) {
      Value *row = block;
      if (teams > 1)
        row = b.CreateAdd(b.CreateMul(block, b.getInt32(teams)),
                          b.CreateUDiv(thread, b.getInt32(team)));
      if (s.rows % teams != 0 && team < kWarp) {
        // All lanes take part in reductions; those behind the last row store nothing.
        rowValid = b.CreateICmpULT(row, b.getInt32(s.rows));
        row = b.CreateSelect(rowValid, row, b.getInt32(0));
      }
      if (s.rows % teams == 0 || rowValid)
        emitRow(row, {});
      else
        emitIf(b, b.CreateICmpULT(row, b.getInt32(s.rows)), [&] { emitRow(row, {}); });
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
    cpu::emitLoop(b, first, end, 1, {}, [&](Value *row, ArrayRef<Value *>) {
      Value *number = b.CreateTrunc(row, b.getInt32Ty());
      isFirstRow = b.CreateICmpEQ(number, firstRow);
      if (inRegisters) {
        takePrefetched();
        Value *next = b.CreateAdd(number, b.getInt32(1));
        prefetch(b.CreateSelect(b.CreateICmpULT(next, b.CreateTrunc(end, b.getInt32Ty())), next,
                                number));
      }
      emitRow(number, sums);
      if (hasReductions && team > kWarp)
        barrier(); // before anyone writes the shared memory of the next row
      return cpu::Values();
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

  /// One row by one team.
  void emitRow(Value *row, ArrayRef<AllocaInst *> sums) {
    enterRow(row);
    for (auto [p, sweep] : enumerate(s.sweeps)) {
      for (unsigned node : sweep.rowNodes)
        if (s.program.nodes[node].kind != Kind::Reduce)
          evaluateRow(node);
      if (sweep.reductions.empty())
        continue;
      reduceRow(row, sweep.reductions);
    }
    if (s.lastSweepStores())
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

  /// The reductions of one sweep, but for those that an earlier sweep did.
  void reduceRow(Value *row, ArrayRef<unsigned> reductions) {
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

  /// Of a maximum over x: the sum over exp(x - maximum), which rows that are read again from memory
  /// compute in the sweep of the maximum, relative to the maximum so far (Milakov and Gimelshein,
  /// arXiv:1805.02867).
  std::optional<unsigned> exponentialsOf(unsigned maximum) const {
    const auto &nodes = s.program.nodes;
    auto is = [&](unsigned node, Kind kind, auto code) {
      return nodes[node].kind == kind && nodes[node].code == static_cast<unsigned>(code);
    };
    if (!is(maximum, Kind::Reduce, RowReduction::Max))
      return std::nullopt;
    for (auto [i, node] : enumerate(nodes)) {
      if (!is(i, Kind::Reduce, RowReduction::Sum) ||
          !is(node.inputs[0], Kind::Unary, RowUnary::Exp))
        continue;
      unsigned difference = nodes[node.inputs[0]].inputs[0];
      if (is(difference, Kind::Binary, RowBinary::Sub) &&
          nodes[difference].inputs[0] == nodes[maximum].inputs[0] &&
          nodes[difference].inputs[1] == maximum)
        return i;
    }
    return std::nullopt;
  }

  /// What exponents are relative to: 0 where all numbers are -infinity.
  Value *finiteBase(Value *maximum) {
    Value *none = b.CreateFCmpOEQ(maximum, identity(RowReduction::Max));
    return b.CreateSelect(none, ConstantFP::get(b.getFloatTy(), 0.0), maximum);
  }
  Value *exponential(Value *x, Value *base) {
    return math.unary(RowUnary::Exp, b.CreateFSub(x, base));
  }

  void accumulateExponentials(AllocaInst *maximum, AllocaInst *sum, unsigned tile,
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

  /// Runs the body for every chunk of the row that is this thread's.
  void forChunks(Value *row, function_ref<void(const Chunk &)> body) {
    if (inRegisters) {
      for (int64_t k = 0; k < kept; ++k)
        body(chunkOf(row, b.CreateAdd(inTeam, b.getInt32(k * team)), k, (k + 1) * team > chunks));
      return;
    }
    Value *from = b.CreateZExt(inTeam, b.getInt64Ty());
    int64_t step = team * kUnroll, whole = chunks / step * step;
    cpu::emitLoop(b, from, b.getInt64(whole), step, {}, [&](Value *index, ArrayRef<Value *>) {
      tiles.clear();
      for (int64_t k = 0; k < kUnroll; ++k)
        body(chunkOf(row, b.CreateAdd(b.CreateTrunc(index, b.getInt32Ty()), b.getInt32(k * team)),
                     k,
                     /*guarded=*/false));
      return cpu::Values();
    });
    tiles.clear();
    for (int64_t first = whole; first < chunks; first += team)
      body(chunkOf(row, b.CreateAdd(inTeam, b.getInt32(first)), (first - whole) / team,
                   first + team > chunks));
    tiles.clear();
  }

  /// A thread without a chunk computes the first one again and stores nothing.
  Chunk chunkOf(Value *row, Value *index, unsigned number, bool guarded) {
    Value *valid = nullptr;
    if (guarded) {
      valid = b.CreateICmpULT(index, b.getInt32(chunks));
      index = b.CreateSelect(valid, index, b.getInt32(0));
    }
    if (rowValid)
      valid = valid ? b.CreateAnd(valid, rowValid) : rowValid;
    return {b.CreateMul(index, b.getInt32(width)), row, valid, number};
  }

  void enterRow(Value *row) {
    currentRow = row;
    rowValues.clear();
    tiles.clear();
    auto offset = [&](Value *base, const TensorAccess &access, RowType type) {
      return elementPointer(base, offsetOf(access.rows, row), type);
    };
    inputRows.clear();
    for (auto [i, base] : enumerate(inputs))
      inputRows.push_back(isGathered(i) ? base
                                        : offset(base, s.inputs[i], s.program.inputs[i].type));
    resultRows.clear();
    for (auto [i, base] : enumerate(results))
      resultRows.push_back(s.program.isSummed(s.program.results[i])
                               ? base
                               : offset(base, s.results[i], s.program.results[i].type));
  }

  bool isGathered(unsigned input) const {
    return any_of(s.program.nodes, [&](const RowNode &node) {
      return node.kind == Kind::Gather && node.code == input;
    });
  }

  //===-- Addresses -------------------------------------------------------------------------===//

  /// Offset in elements (i64) of a position in dimensions that count it in row-major order.
  Value *offsetOf(const Strided &dims, Value *position) {
    Type *type = position->getType();
    Value *offset = nullptr;
    for (auto [i, dim] : enumerate(reverse(dims.dims))) {
      bool outermost = i + 1 == dims.dims.size();
      Value *at = outermost ? position : b.CreateURem(position, ConstantInt::get(type, dim.size));
      if (!outermost)
        position = b.CreateUDiv(position, ConstantInt::get(type, dim.size));
      Value *term = b.CreateMul(b.CreateZExtOrTrunc(at, b.getInt64Ty()), b.getInt64(dim.stride));
      offset = offset ? b.CreateAdd(offset, term) : term;
    }
    return offset ? offset : b.getInt64(0);
  }

  Value *elementPointer(Value *base, Value *offset, RowType type) {
    return b.CreateInBoundsGEP(math.memoryType(type), base, offset);
  }

  Value *plus(Value *column, int64_t n) {
    return b.CreateAdd(column, ConstantInt::get(column->getType(), n));
  }

  Value *loadOne(Value *pointer, RowType type) {
    return math.fromMemory(
        b.CreateAlignedLoad(math.memoryType(type), pointer, Align(storageBytes(type))), type);
  }

  /// The numbers of a chunk.
  SmallVector<Value *> loadChunk(Value *row, const TensorAccess &access, RowType type,
                                 int64_t alignment, Value *column) {
    unsigned bytes = storageBytes(type);
    if (access.columns.dims.empty())
      return SmallVector<Value *>(width, loadOne(row, type));
    SmallVector<Value *> values;
    if (isVector(access, width, bytes, alignment)) {
      auto *vector = FixedVectorType::get(math.memoryType(type), width);
      Value *raw =
          b.CreateAlignedLoad(vector, elementPointer(row, offsetOf(access.columns, column), type),
                              vectorAlignment(width * bytes));
      for (int64_t v = 0; v < width; ++v)
        values.push_back(math.fromMemory(b.CreateExtractElement(raw, v), type));
      return values;
    }
    for (int64_t v = 0; v < width; ++v)
      values.push_back(
          loadOne(elementPointer(row, offsetOf(access.columns, plus(column, v)), type), type));
    return values;
  }

  //===-- Values ----------------------------------------------------------------------------===//

  /// A value of the row (or of everything).
  Value *evaluateRow(unsigned number) {
    if (auto it = scalars.find(number); it != scalars.end())
      return it->second;
    Value *&known = rowValues[number];
    if (!known) {
      Value *value = evaluate(number);
      known = rowValues[number] = value; // the map may have grown
      return value;
    }
    return known;
  }

  /// The values of a chunk.
  SmallVector<Value *> evaluateTile(unsigned number, const Chunk &chunk) {
    if (!variesOverColumns(s.program.nodes[number].form))
      return SmallVector<Value *>(width, evaluateRow(number));
    auto key = std::pair(number, chunk.number);
    if (auto it = keptTiles.find(key); it != keptTiles.end())
      return it->second;
    if (auto it = tiles.find(key); it != tiles.end())
      return it->second;
    SmallVector<Value *> values = computeTile(number, chunk);
    tiles[key] = values;
    return values;
  }

  SmallVector<Value *> computeTile(unsigned number, const Chunk &chunk) {
    const RowNode &node = s.program.nodes[number];
    switch (node.kind) {
    case Kind::Input: {
      if (auto it = arrived.find({node.code, chunk.number}); it != arrived.end())
        return it->second;
      Value *base =
          s.flat || node.form == RowForm::Column ? inputs[node.code] : inputRows[node.code];
      return loadChunk(base, s.inputs[node.code], node.type, inputAlignment[node.code],
                       chunk.column);
    }
    case Kind::Index: {
      SmallVector<Value *> values;
      for (int64_t v = 0; v < width; ++v)
        values.push_back(coordinate(node.code, chunk, v));
      return values;
    }
    case Kind::Gather: {
      Value *id = b.CreateZExt(evaluateRow(node.inputs[0]), b.getInt64Ty());
      const TensorAccess &table = s.inputs[node.code];
      Value *offset = b.CreateMul(id, b.getInt64(table.rows.dims.front().stride));
      return loadChunk(elementPointer(inputs[node.code], offset, node.type), table, node.type,
                       inputAlignment[node.code], chunk.column);
    }
    case Kind::Rotate:
      return rotate(node, chunk);
    default:
      break;
    }
    SmallVector<SmallVector<Value *>> operands;
    for (unsigned input : node.inputs)
      operands.push_back(evaluateTile(input, chunk));
    SmallVector<Value *> values;
    for (int64_t v = 0; v < width; ++v) {
      SmallVector<Value *> one;
      for (const SmallVector<Value *> &operand : operands)
        one.push_back(operand[v]);
      values.push_back(compute(node, one));
    }
    return values;
  }

  /// A value without columns.
  Value *evaluate(unsigned number) {
    const RowNode &node = s.program.nodes[number];
    switch (node.kind) {
    case Kind::Input:
      return loadOne(node.form == RowForm::Row ? inputRows[node.code] : inputs[node.code],
                     node.type);
    case Kind::Index:
      return rowCoordinate(node.code);
    case Kind::Reduce: // of one column
      return evaluateRow(node.inputs[0]);
    default:
      break;
    }
    SmallVector<Value *> operands;
    for (unsigned input : node.inputs)
      operands.push_back(evaluateRow(input));
    return compute(node, operands);
  }

  Value *compute(const RowNode &node, ArrayRef<Value *> in) {
    auto type = [&](unsigned i) { return s.program.nodes[node.inputs[i]].type; };
    switch (node.kind) {
    case Kind::Constant:
      if (isFloat(node.type))
        return ConstantFP::get(b.getFloatTy(), node.value);
      return node.type == RowType::I1 ? b.getInt1(node.value != 0.0)
                                      : b.getInt32(static_cast<int32_t>(node.value));
    case Kind::Unary:
      return math.unary(static_cast<RowUnary>(node.code), in[0]);
    case Kind::Binary:
      return binary(static_cast<RowBinary>(node.code), in[0], in[1], isFloat(type(0)));
    case Kind::Compare:
      return compare(static_cast<RowPredicate>(node.code), in[0], in[1], isFloat(type(0)),
                     type(0) == RowType::I1);
    case Kind::Select:
      return b.CreateSelect(in[0], in[1], in[2]);
    case Kind::Cast:
      return math.convert(in[0], type(0), node.type);
    case Kind::Reduce: // over one element, in the flat shape written as a cast
      return in[0];
    default:
      llvm_unreachable("has a case of its own");
    }
  }

  Value *binary(RowBinary f, Value *x, Value *y, bool real) {
    switch (f) {
    case RowBinary::Add:
      return real ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case RowBinary::Sub:
      return real ? b.CreateFSub(x, y) : b.CreateSub(x, y);
    case RowBinary::Mul:
      return real ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    case RowBinary::Div:
      assert(real && "integers are not divided");
      return b.CreateFDiv(x, y);
    case RowBinary::Max:
      return real ? math.max(x, y) : b.CreateSelect(b.CreateICmpSLT(x, y), y, x);
    case RowBinary::Min:
      return real ? math.min(x, y) : b.CreateSelect(b.CreateICmpSLT(y, x), y, x);
    }
    llvm_unreachable("six operators");
  }

  Value *compare(RowPredicate p, Value *x, Value *y, bool real, bool truth) {
    using P = CmpInst::Predicate;
    auto choose = [&](P r, P i, P u) {
      return real ? b.CreateFCmp(r, x, y) : b.CreateICmp(truth ? u : i, x, y);
    };
    switch (p) {
    case RowPredicate::Eq:
      return choose(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
    case RowPredicate::Ne:
      return choose(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
    case RowPredicate::Lt:
      return choose(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
    case RowPredicate::Le:
      return choose(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
    case RowPredicate::Gt:
      return choose(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
    case RowPredicate::Ge:
      return choose(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
    }
    llvm_unreachable("six predicates");
  }

  /// Coordinate along dimension `dim` of a position within dimensions of these sizes.
  Value *coordinateWithin(ArrayRef<int64_t> sizes, unsigned dim, Value *position) {
    int64_t inner = 1;
    for (int64_t size : sizes.drop_front(dim + 1))
      inner *= size;
    Type *type = position->getType();
    Value *at = b.CreateUDiv(position, ConstantInt::get(type, inner));
    if (dim > 0)
      at = b.CreateURem(at, ConstantInt::get(type, sizes[dim]));
    return b.CreateZExtOrTrunc(at, b.getInt32Ty());
  }

  Value *rowCoordinate(unsigned dim) {
    return coordinateWithin(s.program.domain.rowShape, dim, currentRow);
  }

  Value *coordinate(unsigned dim, const Chunk &chunk, int64_t v) {
    const RowDomain &domain = s.program.domain;
    unsigned rowRank = domain.rowShape.size();
    Value *column = plus(chunk.column, v), *row = nullptr;
    if (s.flat) {
      row = b.CreateUDiv(column, b.getInt64(s.columns));
      column = b.CreateURem(column, b.getInt64(s.columns));
    }
    if (dim < rowRank)
      return coordinateWithin(domain.rowShape, dim, s.flat ? row : chunk.row);
    return coordinateWithin(domain.innerShape, dim - rowRank, column);
  }

  //===-- The next row ----------------------------------------------------------------------===//

  /// A chunk of an input as it lies in memory, in variables that live in registers. Numbers are
  /// made of it only when they are used: before that nothing waits for the load.
  struct ComingChunk {
    std::vector<AllocaInst *> words; ///< 32 bits each; else `numbers`
    std::vector<AllocaInst *> numbers;
  };

  /// Starts loading the tiles of a row: while one row is summed, the next one is on its way.
  void prefetch(Value *row) {
    for (auto [i, input] : enumerate(s.program.inputs)) {
      if (input.form != RowForm::Tile || isGathered(i))
        continue;
      Value *base = elementPointer(inputs[i], offsetOf(s.inputs[i].rows, row), input.type);
      for (int64_t k = 0; k < kept; ++k) {
        Chunk chunk =
            chunkOf(row, b.CreateAdd(inTeam, b.getInt32(k * team)), k, (k + 1) * team > chunks);
        prefetchChunk(coming[{i, k}], base, i, chunk.column);
      }
    }
  }

  void prefetchChunk(ComingChunk &to, Value *base, unsigned input, Value *column) {
    const TensorAccess &access = s.inputs[input];
    RowType type = s.program.inputs[input].type;
    unsigned bytes = storageBytes(type);
    int64_t count = width * bytes / 4;
    if (count > 0 && isVector(access, width, bytes, inputAlignment[input])) {
      Value *pointer = elementPointer(base, offsetOf(access.columns, column), type);
      Value *raw = b.CreateAlignedLoad(FixedVectorType::get(b.getInt32Ty(), count), pointer,
                                       vectorAlignment(width * bytes));
      to.words.resize(count);
      for (int64_t w = 0; w < count; ++w)
        keepIn(to.words[w], b.CreateExtractElement(raw, w));
      return;
    }
    to.numbers.resize(width);
    for (int64_t v = 0; v < width; ++v) {
      Value *at =
          access.columns.dims.empty() ? b.getInt64(0) : offsetOf(access.columns, plus(column, v));
      keepIn(to.numbers[v], b.CreateAlignedLoad(math.memoryType(type),
                                                elementPointer(base, at, type), Align(bytes)));
    }
  }
  void keepIn(AllocaInst *&memory, Value *value) {
    if (!memory) {
      BasicBlock &entry = function->getEntryBlock();
      memory = IRBuilder<>(&entry, entry.begin()).CreateAlloca(value->getType());
    }
    b.CreateStore(value, memory);
  }
  Value *valueIn(AllocaInst *memory) { return b.CreateLoad(memory->getAllocatedType(), memory); }

  void takePrefetched() {
    arrived.clear();
    for (const auto &[key, chunk] : coming) {
      RowType type = s.program.inputs[key.first].type;
      SmallVector<Value *> values;
      for (AllocaInst *memory : chunk.numbers)
        values.push_back(math.fromMemory(valueIn(memory), type));
      auto *part = FixedVectorType::get(math.memoryType(type), 4 / storageBytes(type));
      for (AllocaInst *memory : chunk.words) {
        Value *word = b.CreateBitCast(valueIn(memory), part);
        for (unsigned v = 0; v < part->getNumElements(); ++v)
          values.push_back(math.fromMemory(b.CreateExtractElement(word, v), type));
      }
      arrived[key] = values;
    }
  }

  //===-- Rotation --------------------------------------------------------------------------===//

  /// RowEmitter.h says what it means; angles in f64, as on the CPU.
  SmallVector<Value *> rotate(const RowNode &node, const Chunk &chunk) {
    const Rotation &r = node.rotation;
    int64_t head = s.program.domain.innerShape.back(), half = head / 2;
    const TensorAccess &access = s.inputs[node.code];
    RowType type = s.program.inputs[node.code].type;
    int64_t alignment = inputAlignment[node.code];
    auto at = [&](Value *column) {
      return loadChunk(inputRows[node.code], access, type, alignment, column);
    };
    SmallVector<Value *> x = at(chunk.column), other;
    Value *inHead = b.CreateURem(chunk.column, b.getInt32(head));
    Value *isFirst = nullptr;
    if (r.halfSplit) {
      isFirst = b.CreateICmpULT(inHead, b.getInt32(half));
      Value *step = b.CreateSelect(isFirst, b.getInt32(half), b.getInt32(-half));
      other = at(b.CreateAdd(chunk.column, step));
    } else {
      for (int64_t v = 0; v < width; ++v)
        other.push_back(x[v ^ 1]);
    }
    Value *position = b.CreateURem(chunk.row, b.getInt32(r.length));
    if (r.period > 0)
      position = b.CreateURem(position, b.getInt32(r.period));
    position = b.CreateUIToFP(position, b.getDoubleTy());
    Value *pair = r.halfSplit ? b.CreateURem(inHead, b.getInt32(half)) : b.CreateLShr(inHead, 1);
    int64_t pairs = r.halfSplit ? width : width / 2; // of this chunk; the table has whole chunks
    Value *frequencies = b.CreateAlignedLoad(
        FixedVectorType::get(b.getDoubleTy(), pairs),
        b.CreateGEP(b.getDoubleTy(), frequencyTable(r, half), pair), Align(pairs > 1 ? 16 : 8));
    Value *cos = nullptr, *sin = nullptr;
    SmallVector<Value *> values;
    for (int64_t v = 0; v < width; ++v) {
      if (r.halfSplit || v % 2 == 0) {
        Value *frequency = b.CreateExtractElement(frequencies, r.halfSplit ? v : v / 2);
        VectorMath::SinCos f = math.sinCos(b.CreateFMul(position, frequency));
        cos = f.cos;
        sin = f.sin;
      }
      Value *minus = b.CreateFNeg(sin), *signedSin;
      if (r.halfSplit)
        signedSin =
            r.inverse ? b.CreateSelect(isFirst, sin, minus) : b.CreateSelect(isFirst, minus, sin);
      else
        signedSin = (v % 2 == 0) != r.inverse ? minus : sin;
      values.push_back(b.CreateFAdd(b.CreateFMul(x[v], cos), b.CreateFMul(other[v], signedSin)));
    }
    return values;
  }

  /// base^(-2i/hd) for each pair i. In global memory: threads of a warp read different ones, which
  /// constant memory serves one after the other.
  Value *frequencyTable(const Rotation &r, int64_t pairs) {
    std::vector<double> inverse;
    for (int64_t i = 0; i < pairs; ++i)
      inverse.push_back(std::pow(r.base, -static_cast<double>(i) / static_cast<double>(pairs)));
    Constant *values = ConstantDataArray::get(b.getContext(), inverse);
    constexpr unsigned kGlobalMemory = 1;
    auto *global = new GlobalVariable(
        *function->getParent(), values->getType(), true, GlobalValue::InternalLinkage, values,
        function->getName() + "_frequencies", nullptr, GlobalValue::NotThreadLocal, kGlobalMemory);
    global->setAlignment(Align(16));
    return global;
  }

  //===-- Results ---------------------------------------------------------------------------===//

  void whenValid(const Chunk &chunk, function_ref<void()> body) {
    if (chunk.valid)
      emitIf(b, chunk.valid, body);
    else
      body();
  }

  /// All results that have columns, but for sums.
  void storeTiles(const Chunk &chunk) {
    SmallVector<std::pair<unsigned, SmallVector<Value *>>> ready;
    for (auto [i, result] : enumerate(s.program.results)) {
      if (s.program.isSummed(result) ||
          (!variesOverColumns(result.form) && !(s.flat && result.form == RowForm::Scalar)))
        continue;
      SmallVector<Value *> values = evaluateTile(result.node, chunk);
      RowType from = s.program.nodes[result.node].type;
      for (Value *&value : values)
        value = math.toMemory(math.convert(value, from, result.type), result.type);
      ready.emplace_back(i, std::move(values));
    }
    if (ready.empty())
      return;
    whenValid(chunk, [&] {
      for (auto &[i, values] : ready)
        storeChunk(i, values, chunk);
    });
  }

  void storeChunk(unsigned number, ArrayRef<Value *> values, const Chunk &chunk) {
    const RowResult &result = s.program.results[number];
    const TensorAccess &access = s.results[number];
    unsigned bytes = storageBytes(result.type);
    Value *base = s.flat ? results[number] : resultRows[number];
    if (s.flat && result.form == RowForm::Scalar) {
      emitIf(b, b.CreateICmpEQ(chunk.column, b.getInt64(0)),
             [&] { b.CreateAlignedStore(values[0], base, Align(bytes)); });
      return;
    }
    if (result.form == RowForm::Column && s.rows > 1) {
      emitIf(b, b.CreateICmpEQ(chunk.row, b.getInt32(0)),
             [&] { storeAt(base, access, result, bytes, number, values, chunk.column); });
      return;
    }
    storeAt(base, access, result, bytes, number, values, chunk.column);
  }

  void storeAt(Value *base, const TensorAccess &access, const RowResult &result, unsigned bytes,
               unsigned number, ArrayRef<Value *> values, Value *column) {
    if (isVector(access, width, bytes, resultAlignment[number])) {
      Value *vector = PoisonValue::get(FixedVectorType::get(math.memoryType(result.type), width));
      for (int64_t v = 0; v < width; ++v)
        vector = b.CreateInsertElement(vector, values[v], v);
      b.CreateAlignedStore(vector,
                           elementPointer(base, offsetOf(access.columns, column), result.type),
                           vectorAlignment(width * bytes));
      return;
    }
    for (int64_t v = 0; v < width; ++v)
      b.CreateAlignedStore(
          values[v], elementPointer(base, offsetOf(access.columns, plus(column, v)), result.type),
          Align(bytes));
  }

  /// Results that are one number for the row, or for everything, by one thread of the row.
  void storeRowResults(Value *isOne) {
    SmallVector<unsigned> numbers;
    for (auto [i, result] : enumerate(s.program.results))
      if (!s.program.isSummed(result) && !variesOverColumns(result.form))
        numbers.push_back(i);
    if (numbers.empty())
      return;
    if (rowValid)
      isOne = b.CreateAnd(isOne, rowValid);
    emitIf(b, isOne, [&] {
      for (unsigned i : numbers) {
        const RowResult &result = s.program.results[i];
        Value *value = math.toMemory(
            math.convert(evaluateRow(result.node), s.program.nodes[result.node].type, result.type),
            result.type);
        Value *pointer = result.form == RowForm::Row ? resultRows[i] : results[i];
        auto storeValue = [&] {
          b.CreateAlignedStore(value, pointer, Align(storageBytes(result.type)));
        };
        if (result.form == RowForm::Scalar && s.rows > 1)
          emitIf(b, b.CreateICmpEQ(currentRow, b.getInt32(0)), storeValue);
        else
          storeValue();
      }
    });
  }

  //===-- Sums over rows --------------------------------------------------------------------===//

  bool isColumnSum(const RowResult &result) const {
    return !s.flat &&
           variesOverColumns(s.program.nodes[s.program.nodes[result.node].inputs[0]].form);
  }

  AllocaInst *allocate(int64_t count) {
    BasicBlock &entry = function->getEntryBlock();
    IRBuilder<> at(&entry, entry.begin());
    return at.CreateAlloca(ArrayType::get(b.getFloatTy(), count));
  }
  Value *slot(AllocaInst *memory, int64_t i) {
    return b.CreateConstInBoundsGEP1_64(b.getFloatTy(), memory, i);
  }
  Value *load(AllocaInst *memory, int64_t i = 0) {
    return b.CreateAlignedLoad(b.getFloatTy(), slot(memory, i), Align(4));
  }
  void store(Value *value, AllocaInst *memory, int64_t i = 0) {
    b.CreateAlignedStore(value, slot(memory, i), Align(4));
  }

  std::vector<AllocaInst *> makeSums(int64_t count) {
    std::vector<AllocaInst *> sums(s.program.results.size(), nullptr);
    for (auto [i, result] : enumerate(s.program.results)) {
      if (!s.program.isSummed(result))
        continue;
      sums[i] = allocate(count);
      for (int64_t n = 0; n < count; ++n)
        store(identity(RowReduction::Sum), sums[i], n);
    }
    return sums;
  }

  /// Values that are the same in all rows, before the loop over rows.
  void keepColumns() {
    currentRow = b.getInt32(0);
    for (int64_t k = 0; k < kept; ++k) {
      Chunk chunk = chunkOf(b.getInt32(0), b.CreateAdd(inTeam, b.getInt32(k * team)), k,
                            (k + 1) * team > chunks);
      for (auto [i, node] : enumerate(s.program.nodes))
        if (node.form == RowForm::Column && node.kind != Kind::SumRows)
          keptTiles[{i, k}] = evaluateTile(i, chunk);
    }
    tiles.clear();
  }

  void addSums(ArrayRef<AllocaInst *> sums, const Chunk &chunk) {
    for (auto [i, result] : enumerate(s.program.results))
      if (s.program.isSummed(result))
        accumulate(RowReduction::Sum, sums[i], s.program.nodes[result.node].inputs[0], chunk);
  }

  void addColumnSums(ArrayRef<AllocaInst *> sums, const Chunk &chunk) {
    for (auto [i, result] : enumerate(s.program.results)) {
      if (!s.program.isSummed(result) || !isColumnSum(result))
        continue;
      SmallVector<Value *> values = evaluateTile(s.program.nodes[result.node].inputs[0], chunk);
      if (inRegisters) {
        for (int64_t v = 0; v < width; ++v) {
          int64_t at = chunk.number * width + v;
          store(b.CreateFAdd(load(sums[i], at), values[v]), sums[i], at);
        }
        continue;
      }
      // Too many columns for registers: the row of partial sums itself, each element by one thread.
      whenValid(chunk, [&] {
        for (int64_t v = 0; v < width; ++v) {
          Value *pointer = partialPointer(i, plus(chunk.column, v));
          Value *before = b.CreateSelect(isFirstRow, identity(RowReduction::Sum),
                                         b.CreateAlignedLoad(b.getFloatTy(), pointer, Align(4)));
          b.CreateAlignedStore(b.CreateFAdd(before, values[v]), pointer, Align(4));
        }
      });
    }
  }

  Value *partialPointer(unsigned number, Value *column) {
    Value *row = b.CreateMul(b.CreateZExt(block, b.getInt64Ty()), b.getInt64(s.columns));
    return b.CreateInBoundsGEP(b.getFloatTy(), results[number],
                               b.CreateAdd(row, b.CreateZExt(column, b.getInt64Ty())));
  }

  void storeColumnSums(unsigned number, AllocaInst *sums) {
    for (int64_t k = 0; k < kept; ++k) {
      Chunk chunk =
          chunkOf(nullptr, b.CreateAdd(inTeam, b.getInt32(k * team)), k, (k + 1) * team > chunks);
      whenValid(chunk, [&] {
        for (int64_t v = 0; v < width; ++v)
          b.CreateAlignedStore(load(sums, k * width + v),
                               partialPointer(number, plus(chunk.column, v)), Align(4));
      });
    }
  }

  void storeScalarSum(unsigned number, Value *sum) {
    emitIf(b, b.CreateICmpEQ(thread, b.getInt32(0)), [&] {
      b.CreateAlignedStore(
          sum,
          b.CreateInBoundsGEP(b.getFloatTy(), results[number], b.CreateZExt(block, b.getInt64Ty())),
          Align(4));
    });
  }

  //===-- Reductions ------------------------------------------------------------------------===//

  RowReduction reductionOf(unsigned node) const {
    return static_cast<RowReduction>(s.program.nodes[node].code);
  }
  Value *combine(RowReduction r, Value *x, Value *y) {
    return r == RowReduction::Sum ? b.CreateFAdd(x, y) : math.max(x, y);
  }
  Value *identity(RowReduction r) {
    double value = r == RowReduction::Sum ? -0.0 : -std::numeric_limits<double>::infinity();
    return ConstantFP::get(b.getFloatTy(), value);
  }

  void accumulate(RowReduction r, AllocaInst *memory, unsigned node, const Chunk &chunk) {
    SmallVector<Value *> values = evaluateTile(node, chunk);
    Value *sum = values[0];
    for (Value *value : drop_begin(values))
      sum = combine(r, sum, value);
    if (chunk.valid)
      sum = b.CreateSelect(chunk.valid, sum, identity(r));
    store(combine(r, load(memory), sum), memory);
  }

  void barrier() {
    b.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all, ArrayRef<Type *>(),
                      ArrayRef<Value *>(b.getInt32(0)));
  }

  /// Over the lanes of a team, at most a warp.
  Value *butterfly(RowReduction r, Value *x) {
    for (int distance = std::min(team, kWarp) / 2; distance > 0; distance /= 2) {
      Value *bits =
          b.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_bfly_i32, ArrayRef<Type *>(),
                            ArrayRef<Value *>{b.getInt32(-1), b.CreateBitCast(x, b.getInt32Ty()),
                                              b.getInt32(distance), b.getInt32(kWarp - 1)});
      x = combine(r, x, b.CreateBitCast(bits, b.getFloatTy()));
    }
    return x;
  }

  /// Over the threads of a team; every thread gets the result.
  Value *reduceTeam(RowReduction r, Value *x) {
    x = butterfly(r, x);
    if (team <= kWarp)
      return x;
    int64_t warps = team / kWarp;
    constexpr unsigned kSharedMemory = 3;
    auto *type = ArrayType::get(b.getFloatTy(), warps);
    auto *shared = new GlobalVariable(
        *function->getParent(), type, false, GlobalValue::InternalLinkage, UndefValue::get(type),
        function->getName() + "_shared", nullptr, GlobalValue::NotThreadLocal, kSharedMemory);
    shared->setAlignment(Align(16));
    if (!lane)
      lane = b.CreateAnd(thread, b.getInt32(kWarp - 1));
    Value *warp = b.CreateLShr(thread, 5);
    auto at = [&](Value *i) { return b.CreateInBoundsGEP(b.getFloatTy(), shared, i); };
    emitIf(b, b.CreateICmpEQ(lane, b.getInt32(0)),
           [&] { b.CreateAlignedStore(x, at(warp), Align(4)); });
    barrier();
    Value *exists = b.CreateICmpULT(lane, b.getInt32(warps));
    Value *read = b.CreateAlignedLoad(b.getFloatTy(),
                                      at(b.CreateSelect(exists, lane, b.getInt32(0))), Align(4));
    return butterfly(r, b.CreateSelect(exists, read, identity(r)));
  }

  Function *function;
  RowSchedule s;
  IRBuilder<> b;
  DeviceMath math;
  int64_t grain;
  SmallVector<int64_t> inputAlignment, resultAlignment;
  LaunchShape shape;
  bool hasReductions = false, hasSums = false, inRegisters = false;
  int64_t columns = 1, width = 1, chunks = 1; ///< elements of a row, of a chunk; chunks of a row
  int64_t team = 1, teams = 1, kept = 1; ///< threads of a row, rows of a block, chunks of a thread
  Value *thread = nullptr, *block = nullptr, *lane = nullptr, *inTeam = nullptr;
  Value *currentRow = nullptr, *isFirstRow = nullptr;
  Value *rowValid = nullptr;                  ///< whether there is such a row; null: always
  std::vector<Value *> inputs, results;       ///< arguments
  std::vector<Value *> inputRows, resultRows; ///< where the current row begins
  std::map<unsigned, Value *> scalars, rowValues;
  std::map<std::pair<unsigned, unsigned>, ComingChunk> coming; ///< input, chunk: of the next row
  std::map<std::pair<unsigned, unsigned>, SmallVector<Value *>> tiles, keptTiles; ///< node, chunk
  std::map<std::pair<unsigned, unsigned>, SmallVector<Value *>> arrived;          ///< input, chunk
};

} // namespace

LaunchShape emitRowKernel(Function *function, const RowProgram &program, ArrayRef<Strides> layouts,
                          ArrayRef<int64_t> alignments, int64_t grain) {
  return RowKernel(function, program, layouts, alignments, grain).emit();
}

unsigned argumentCount(const RowProgram &program) {
  return program.inputs.size() + program.results.size();
}

LaunchShape emitCombine(Function *function, int64_t parts, ArrayRef<int64_t> shape,
                        ArrayRef<int64_t> strides, RowType type) {
  // A warp has 32 columns; the warps share the parts, and the first adds their sums.
  const int64_t warps = parts > 128 ? 32 : 8;
  TensorAccess access = cpu::accessOf(shape, strides);
  int64_t columns = 1;
  for (int64_t size : shape)
    columns *= size;
  IRBuilder<> b(BasicBlock::Create(function->getContext(), "entry", function));
  DeviceMath math(b);
  Value *thread = specialRegister(b, Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value *block = specialRegister(b, Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  Value *lane = b.CreateAnd(thread, b.getInt32(kWarp - 1)), *warp = b.CreateLShr(thread, 5);
  Value *element =
      b.CreateZExt(b.CreateAdd(b.CreateMul(block, b.getInt32(kWarp)), lane), b.getInt64Ty());
  Value *exists = b.CreateICmpULT(element, b.getInt64(columns));
  Value *column = b.CreateSelect(exists, element, b.getInt64(0));
  auto part = [&](Value *number) {
    Value *offset = b.CreateAdd(b.CreateMul(number, b.getInt64(columns)), column);
    return b.CreateAlignedLoad(
        b.getFloatTy(), b.CreateInBoundsGEP(b.getFloatTy(), function->getArg(0), offset), Align(4));
  };
  // Four loads under way for each thread.
  constexpr int64_t lanes = 4;
  Value *zero = ConstantFP::get(b.getFloatTy(), -0.0);
  Value *first = b.CreateZExt(warp, b.getInt64Ty());
  cpu::Values sums(lanes, zero);
  sums = cpu::emitLoop(b, first, b.getInt64(parts), warps * lanes, sums,
                       [&](Value *number, ArrayRef<Value *> current) {
                         cpu::Values next;
                         for (int64_t i = 0; i < lanes; ++i) {
                           Value *at = b.CreateAdd(number, b.getInt64(i * warps));
                           Value *inside = b.CreateICmpULT(at, b.getInt64(parts));
                           Value *value = part(b.CreateSelect(inside, at, number));
                           next.push_back(
                               b.CreateFAdd(current[i], b.CreateSelect(inside, value, zero)));
                         }
                         return next;
                       });
  Value *sum = b.CreateFAdd(b.CreateFAdd(sums[0], sums[1]), b.CreateFAdd(sums[2], sums[3]));
  constexpr unsigned kSharedMemory = 3;
  auto *sharedType = ArrayType::get(b.getFloatTy(), warps * kWarp);
  auto *shared =
      new GlobalVariable(*function->getParent(), sharedType, false, GlobalValue::InternalLinkage,
                         UndefValue::get(sharedType), function->getName() + "_shared", nullptr,
                         GlobalValue::NotThreadLocal, kSharedMemory);
  shared->setAlignment(Align(16));
  b.CreateAlignedStore(sum, b.CreateInBoundsGEP(b.getFloatTy(), shared, thread), Align(4));
  b.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all, ArrayRef<Type *>(),
                    ArrayRef<Value *>(b.getInt32(0)));
  emitIf(b, b.CreateAnd(b.CreateICmpULT(thread, b.getInt32(kWarp)), exists), [&] {
    Value *total = sum;
    for (int64_t w = 1; w < warps; ++w)
      total = b.CreateFAdd(
          total,
          b.CreateAlignedLoad(b.getFloatTy(),
                              b.CreateInBoundsGEP(b.getFloatTy(), shared,
                                                  b.CreateAdd(thread, b.getInt32(w * kWarp))),
                              Align(4)));
    Value *offset = b.getInt64(0), *position = element;
    for (const Strided::Dim &dim : reverse(access.columns.dims)) {
      Value *at = b.CreateURem(position, b.getInt64(dim.size));
      position = b.CreateUDiv(position, b.getInt64(dim.size));
      offset = b.CreateAdd(offset, b.CreateMul(at, b.getInt64(dim.stride)));
    }
    Value *value = math.toMemory(math.convert(total, RowType::F32, type), type);
    b.CreateAlignedStore(value,
                         b.CreateInBoundsGEP(math.memoryType(type), function->getArg(1), offset),
                         Align(storageBytes(type)));
  });
  b.CreateRetVoid();
  return {ceilDiv(columns, kWarp), warps * kWarp};
}

} // namespace hydra::cuda
