// The loops of a generated kernel over rows, sweeps and columns.
#include "compiler/codegen/cpu/RowCodegen.h"

#include "runtime/support/Integers.h"

#include "llvm/IR/IntrinsicsX86.h"

using namespace llvm;

namespace hydra::cpu {

RowCodegen::RowCodegen(Function *function, const RowSchedule &schedule, int64_t grain)
    : s(schedule), grain(grain), function(function),
      b(BasicBlock::Create(function->getContext(), "entry", function)), math(b),
      memory(b, s.flat ? s.rows * s.columns : s.columns) {}

void RowCodegen::emit() {
  emitEntry();
  emitFixedResults();
  if (is_contained(s.streams, true)) {
    auto *aside = BasicBlock::Create(b.getContext(), "aside", function);
    auto *usual = BasicBlock::Create(b.getContext(), "usual", function);
    b.CreateCondBr(canStream(), aside, usual);
    b.SetInsertPoint(aside);
    streaming = true;
    emitBody();
    streaming = false;
    b.SetInsertPoint(usual);
  }
  emitBody();
}

/// Whether the results that would stream are aligned and do not take over an input, whose lines are
/// in the cache already.
Value *RowCodegen::canStream() {
  Value *bits = b.getInt64(0), *inPlace = b.getFalse();
  for (auto [result, streams] : zip(resultPointers, s.streams)) {
    if (!streams)
      continue;
    bits = b.CreateOr(bits, b.CreatePtrToInt(result, b.getInt64Ty()));
    for (Value *input : inputPointers)
      inPlace = b.CreateOr(inPlace, b.CreateICmpEQ(result, input));
  }
  Value *low = b.CreateAnd(bits, b.getInt64(kLanes * sizeof(float) - 1));
  return b.CreateAnd(b.CreateICmpEQ(low, b.getInt64(0)), b.CreateNot(inPlace));
}

/// All rows of the grain, and the end of the function.
void RowCodegen::emitBody() {
  if (s.flat)
    emitFlat();
  else
    emitLoop(b, begin, end, 1, {}, [&](Value *current, ArrayRef<Value *>) {
      emitRow(current);
      return Values();
    });
  finishSums();
  if (streaming) // before the grain counts as done
    b.CreateIntrinsic(Intrinsic::x86_sse_sfence, ArrayRef<Type *>(), ArrayRef<Value *>());
  b.CreateRetVoid();
}

//===-- Entry and exit ----------------------------------------------------------------------===//

void RowCodegen::emitEntry() {
  Value *args = function->getArg(0);
  begin = function->getArg(1);
  end = function->getArg(2);
  unsigned next = 0;
  auto argument = [&] {
    Value *slot = b.CreateConstGEP1_64(b.getPtrTy(), args, next++);
    return b.CreateAlignedLoad(b.getPtrTy(), slot, Align(8));
  };
  for (size_t i = 0; i < s.program.inputs.size(); ++i)
    inputPointers.push_back(argument());
  resultPointers.resize(s.program.results.size());
  rowSums.resize(s.program.results.size());
  for (auto [i, result] : enumerate(s.program.results))
    if (!s.program.isSummed(result))
      resultPointers[i] = argument();
  Value *number = b.CreateUDiv(begin, b.getInt64(grain));
  for (auto [i, result] : enumerate(s.program.results)) {
    if (!s.program.isSummed(result))
      continue;
    bool byColumn = isColumnSum(result);
    int64_t width = byColumn ? s.columns : 1;
    if (!byColumn && !s.flat)
      rowSums[i] = b.CreateAlloca(b.getFloatTy());
    resultPointers[i] = memory.elementPointer(argument(), RowType::F32,
                                              b.CreateMul(number, b.getInt64(width)));
  }
  for (int i = 0; i < s.buffers; ++i) {
    int64_t padded = support::roundUp(s.columns, kLanes);
    AllocaInst *buffer = b.CreateAlloca(b.getFloatTy(), b.getInt64(padded));
    buffer->setAlignment(Align(64));
    buffers.push_back(buffer);
  }
  for (auto [i, node] : enumerate(s.program.nodes))
    if (node.kind == Kind::Rotate)
      rotaries.try_emplace(i, b, node.rotation, s.program.domain.innerShape.back(), s.columns);

  ones.resize(s.program.nodes.size());
  for (auto [i, node] : enumerate(s.program.nodes))
    if (node.form == RowForm::Scalar && node.kind != Kind::SumRows)
      ones[i] = evaluateOne(i);

  for (auto [i, result] : enumerate(s.program.results)) {
    if (rowSums[i])
      b.CreateStore(ConstantFP::get(b.getFloatTy(), 0.0), rowSums[i]);
    if (s.program.isSummed(result) && isColumnSum(result))
      forColumns(1, {}, [&](const Block &block, ArrayRef<Value *>) {
        memory.storeVector(memory.splat(ConstantFP::get(b.getFloatTy(), 0.0)),
                           memory.elementPointer(resultPointers[i], RowType::F32, block.column),
                           RowType::F32, block.lastMask);
        return Values();
      });
  }
}

/// Results that are the same in all rows.
void RowCodegen::emitFixedResults() {
  auto isFixed = [&](const RowResult &result) {
    return !s.program.isSummed(result) && !variesOverRows(result.form);
  };
  if (none_of(s.program.results, isFixed))
    return;
  emitIf(b, b.CreateICmpEQ(begin, b.getInt64(0)), [&] {
    inputRows = inputPointers;
    resultRows = resultPointers;
    for (auto [i, result] : enumerate(s.program.results)) {
      if (!isFixed(result))
        continue;
      if (result.form == RowForm::Scalar) {
        const RowNode &value = node(result.node);
        memory.storeOne(math.convert(ones[result.node], value.type, result.type),
                        resultPointers[i], result.type);
        continue;
      }
      forColumns(1, {}, [&](const Block &block, ArrayRef<Value *>) {
        Tile tile{{block.column, block.lastMask}, {}};
        storeTile(i, tile);
        return Values();
      });
    }
  });
}

void RowCodegen::finishSums() {
  for (auto [i, result] : enumerate(s.program.results))
    if (rowSums[i])
      b.CreateAlignedStore(b.CreateLoad(b.getFloatTy(), rowSums[i]), resultPointers[i], Align(4));
}

//===-- Rows --------------------------------------------------------------------------------===//

void RowCodegen::emitRow(Value *current) {
  row = current;
  auto rowPointers = [&](ArrayRef<Value *> pointers, ArrayRef<TensorAccess> accesses,
                         auto typeOf) {
    std::vector<Value *> rows;
    for (size_t i = 0; i < pointers.size(); ++i)
      rows.push_back(memory.elementPointer(pointers[i], typeOf(i),
                                           memory.offsetOf(accesses[i].rows, row)));
    return rows;
  };
  auto inputType = [&](size_t i) { return s.program.inputs[i].type; };
  inputRows = rowPointers(inputPointers, s.inputs, inputType);
  resultRows =
      rowPointers(resultPointers, s.results, [&](size_t i) { return s.program.results[i].type; });
  row = b.CreateAdd(current, b.getInt64(1));
  nextRows = rowPointers(inputPointers, s.inputs, inputType);
  row = current;
  // Where a rotation is given its position, as soon as that is known.
  auto prepareRotaries = [&](std::optional<unsigned> known) {
    for (auto &[number, rotary] : rotaries) {
      ArrayRef<unsigned> position = node(number).inputs;
      const bool early = position.empty() || node(position[0]).form == RowForm::Scalar;
      if (known ? !early && position[0] == *known : early)
        rotary.prepare(row, position.empty() ? nullptr : ones[position[0]]);
    }
  };
  prepareRotaries(std::nullopt);
  for (unsigned p = 0; p < s.sweeps.size(); ++p) {
    for (unsigned number : s.sweeps[p].rowNodes)
      if (node(number).kind != Kind::Reduce) {
        ones[number] = evaluateOne(number);
        prepareRotaries(number);
      }
    emitSweep(p);
  }
  for (auto [i, result] : enumerate(s.program.results)) {
    if (s.program.isSummed(result) && !isColumnSum(result)) {
      Value *sum = b.CreateLoad(b.getFloatTy(), rowSums[i]);
      b.CreateStore(b.CreateFAdd(sum, ones[node(result.node).inputs[0]]), rowSums[i]);
    } else if (!s.program.isSummed(result) && result.form == RowForm::Row) {
      const RowNode &value = node(result.node);
      memory.storeOne(math.convert(ones[result.node], value.type, result.type), resultRows[i],
                      result.type);
    }
  }
}

/// Chunks at a time: more hide latencies, fewer keep values in registers. Reductions always take
/// kAccumulators, which fixes their tree.
int64_t RowCodegen::unrollOf(const Sweep &sweep) const {
  if (!sweep.reductions.empty())
    return kAccumulators;
  return sweep.cost <= 12 ? 4 : sweep.cost <= 40 ? 2 : 1;
}

void RowCodegen::emitSweep(unsigned number) {
  sweep = &s.sweeps[number];
  bool last = number + 1 == s.sweeps.size();
  if (last ? !s.lastSweepStores() : sweep->reductions.empty())
    return;
  auto reductionOf = [&](unsigned n) { return static_cast<RowReduction>(node(n).code); };
  Values accumulators;
  for (unsigned n : sweep->reductions)
    accumulators.append(kAccumulators, identity(reductionOf(n)));
  accumulators = forColumns(unrollOf(*sweep), accumulators,
                            [&](const Block &block, ArrayRef<Value *> current) {
                              return emitBlock(last, block, current);
                            });
  for (auto [i, n] : enumerate(sweep->reductions))
    ones[n] = finishReduction(
        reductionOf(n), ArrayRef(accumulators).slice(i * kAccumulators, kAccumulators));
}

Values RowCodegen::forColumns(int64_t unroll, Values carried,
                              function_ref<Values(const Block &, ArrayRef<Value *>)> body) {
  int64_t width = unroll * kLanes, whole = s.columns / width * width, rest = s.columns - whole;
  if (whole == width)
    carried = body({b.getInt64(0), unroll}, carried);
  else if (whole > 0)
    carried = emitLoop(b, b.getInt64(0), b.getInt64(whole), width, carried,
                       [&](Value *column, ArrayRef<Value *> current) {
                         return body({column, unroll}, current);
                       });
  if (rest > 0)
    carried = body({b.getInt64(whole), support::ceilDiv(rest, kLanes),
                    rest % kLanes ? memory.firstLanes(rest % kLanes) : nullptr},
                   carried);
  return carried;
}

//===-- Elements across rows ----------------------------------------------------------------===//

void RowCodegen::emitFlat() {
  inputRows = inputPointers;
  resultRows = resultPointers;
  sweep = &s.sweeps.front();
  Values accumulators;
  bool sums = false;
  for (const RowResult &result : s.program.results)
    if (s.program.isSummed(result)) {
      accumulators.append(kAccumulators, identity(RowReduction::Sum));
      sums = true;
    }
  if (!sums && !s.lastSweepStores())
    return;
  int64_t width = (sums ? kAccumulators : unrollOf(*sweep)) * kLanes;
  Value *from = b.CreateMul(begin, b.getInt64(s.columns));
  Value *to = b.CreateMul(end, b.getInt64(s.columns));
  Value *count = b.CreateSub(to, from);
  Value *rest = b.CreateURem(count, b.getInt64(width));
  Value *whole = b.CreateSub(to, rest);
  accumulators = emitLoop(b, from, whole, width, accumulators,
                          [&](Value *column, ArrayRef<Value *> current) {
                            return emitBlock(true, {column, width / kLanes}, current);
                          });
  accumulators = emitLoop(b, whole, to, kLanes, accumulators,
                          [&](Value *column, ArrayRef<Value *> current) {
                            Value *mask = memory.firstLanes(b.CreateBinaryIntrinsic(
                                Intrinsic::umin, b.CreateSub(to, column), b.getInt64(kLanes)));
                            return emitBlock(true, {column, 1, mask}, current);
                          });
  size_t next = 0;
  for (auto [i, result] : enumerate(s.program.results)) {
    if (!s.program.isSummed(result))
      continue;
    Value *sum = finishReduction(RowReduction::Sum,
                                 ArrayRef(accumulators).slice(next, kAccumulators));
    memory.storeOne(sum, resultPointers[i], RowType::F32);
    next += kAccumulators;
  }
}

//===-- Adding partial sums -----------------------------------------------------------------===//

void emitCombine(Function *function, int64_t parts, ArrayRef<int64_t> shape,
                 ArrayRef<int64_t> strides, RowType type) {
  TensorAccess access = accessOf(shape, strides);
  int64_t columns = 1;
  for (int64_t size : shape)
    columns *= size;
  IRBuilder<> b(BasicBlock::Create(function->getContext(), "entry", function));
  VectorMath math(b);
  TensorMemory memory(b, columns);
  Value *args = function->getArg(0), *begin = function->getArg(1), *end = function->getArg(2);
  auto argument = [&](unsigned i) {
    return b.CreateAlignedLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), args, i), Align(8));
  };
  Value *partials = argument(0), *result = argument(1);
  auto addChunk = [&](const Chunk &chunk) {
    auto part = [&](Value *number) {
      Value *offset = b.CreateAdd(b.CreateMul(number, b.getInt64(columns)), chunk.column);
      return memory.loadVector(memory.elementPointer(partials, RowType::F32, offset), RowType::F32,
                               chunk.mask);
    };
    Values sum = emitLoop(b, b.getInt64(1), b.getInt64(parts), 1, {part(b.getInt64(0))},
                          [&](Value *number, ArrayRef<Value *> current) {
                            return Values{b.CreateFAdd(current[0], part(number))};
                          });
    memory.store(math.convert(sum[0], RowType::F32, type), result, access, type, chunk);
    return Values();
  };
  Value *rest = b.CreateURem(b.CreateSub(end, begin), b.getInt64(kLanes));
  Value *whole = b.CreateSub(end, rest);
  emitLoop(b, begin, whole, kLanes, {}, [&](Value *column, ArrayRef<Value *>) {
    return addChunk({column});
  });
  emitIf(b, b.CreateICmpNE(rest, b.getInt64(0)), [&] {
    addChunk({whole, memory.firstLanes(rest)});
  });
  b.CreateRetVoid();
}

} // namespace hydra::cpu
