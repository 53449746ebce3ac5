// Code for groups of row-wise operations: where numbers lie, and how they are computed.
#include "compiler/codegen/cuda/RowKernelEmitter.h"

#include "llvm/IR/Module.h"

#include <cmath>

using namespace llvm;

namespace hydra::cuda {

using rows::emitIf;
using rows::RowSchedule;
using rows::Strided;
using rows::TensorAccess;
using Kind = RowNode::Kind;

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

/// Whether all columns of a chunk are one element.
static bool isRepeated(const TensorAccess &access, int64_t width) {
  const Strided::Dim &inner = access.columns.dims.back();
  return inner.stride == 0 && inner.size % width == 0;
}

//===-- Addresses ---------------------------------------------------------------------------===//

Value *RowKernelEmitter::offsetOf(const Strided &dims, Value *position) {
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

Value *RowKernelEmitter::elementPointer(Value *base, Value *offset, RowType type) {
  return b.CreateInBoundsGEP(math.memoryType(type), base, offset);
}

Value *RowKernelEmitter::plus(Value *column, int64_t n) {
  return b.CreateAdd(column, ConstantInt::get(column->getType(), n));
}

Value *RowKernelEmitter::loadOne(Value *pointer, RowType type) {
  return math.fromMemory(
      b.CreateAlignedLoad(math.memoryType(type), pointer, Align(storageBytes(type))), type);
}

SmallVector<Value *> RowKernelEmitter::loadChunk(Value *row, const TensorAccess &access,
                                                 RowType type, int64_t alignment, Value *column) {
  unsigned bytes = storageBytes(type);
  if (access.columns.dims.empty())
    return SmallVector<Value *>(width, loadOne(row, type));
  if (isRepeated(access, width))
    return SmallVector<Value *>(
        width, loadOne(elementPointer(row, offsetOf(access.columns, column), type), type));
  SmallVector<Value *> values;
  if (isVector(access, width, bytes, alignment)) {
    Value *pointer = elementPointer(row, offsetOf(access.columns, column), type);
    return numbersOf(loadVector(pointer, type), type);
  }
  for (int64_t v = 0; v < width; ++v)
    values.push_back(
        loadOne(elementPointer(row, offsetOf(access.columns, plus(column, v)), type), type));
  return values;
}

Value *RowKernelEmitter::loadVector(Value *pointer, RowType type) {
  auto *vector = type == RowType::BF16 ? FixedVectorType::get(b.getInt32Ty(), width / 2)
                                       : FixedVectorType::get(math.memoryType(type), width);
  return b.CreateAlignedLoad(vector, pointer, vectorAlignment(width * storageBytes(type)));
}

SmallVector<Value *> RowKernelEmitter::numbersOf(Value *vector, RowType type) {
  SmallVector<Value *> values;
  if (type == RowType::BF16)
    for (int64_t w = 0; w < width / 2; ++w)
      append_range(values, pairOfBf16(b.CreateExtractElement(vector, w)));
  else
    for (int64_t v = 0; v < width; ++v)
      values.push_back(math.fromMemory(b.CreateExtractElement(vector, v), type));
  return values;
}

SmallVector<Value *> RowKernelEmitter::heldChunk(unsigned input, const Chunk &chunk) {
  const RowType type = s.program.inputs[input].type;
  const unsigned bytes = storageBytes(type);
  Value *at =
      b.CreateAdd(b.getInt32(heldAt.at(input)), b.CreateMul(chunk.place, b.getInt32(bytes)));
  Value *place = b.CreateInBoundsGEP(b.getInt8Ty(), held, at);
  if (inShared.contains(input))
    return numbersOf(loadVector(place, type), type);
  const TensorAccess &access = s.inputs[input];
  Value *pointer = elementPointer(inputRows[input], offsetOf(access.columns, chunk.column), type);
  Value *vector = loadVector(pointer, type);
  // A thread reads what it has written itself.
  b.CreateAlignedStore(vector, place, vectorAlignment(width * bytes));
  arriving.insert(input);
  return numbersOf(vector, type);
}

std::array<Value *, 2> RowKernelEmitter::pairOfBf16(Value *word) {
  constexpr uint32_t upper = 0xffff0000;
  return {b.CreateBitCast(b.CreateShl(word, 16), b.getFloatTy()),
          b.CreateBitCast(b.CreateAnd(word, upper), b.getFloatTy())};
}

//===-- Values ------------------------------------------------------------------------------===//

Value *RowKernelEmitter::evaluateRow(unsigned number) {
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

SmallVector<Value *> RowKernelEmitter::evaluateTile(unsigned number, const Chunk &chunk) {
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

SmallVector<Value *> RowKernelEmitter::computeTile(unsigned number, const Chunk &chunk) {
  const RowNode &node = s.program.nodes[number];
  switch (node.kind) {
  case Kind::Input: {
    if (auto it = arrived.find({node.code, chunk.number}); it != arrived.end())
      return it->second;
    if (heldAt.contains(node.code) && !inShared.contains(node.code))
      loads[{number, chunk.number}] = ++loadsMade;
    if (heldAt.contains(node.code))
      return heldChunk(node.code, chunk);
    loads[{number, chunk.number}] = ++loadsMade;
    Value *base = s.flat || node.form == RowForm::Column ? inputs[node.code] : inputRows[node.code];
    return loadChunk(base, s.inputs[node.code], node.type, inputAlignment[node.code], chunk.column);
  }
  case Kind::Index: {
    SmallVector<Value *> values;
    for (int64_t v = 0; v < width; ++v)
      values.push_back(coordinate(node.code, chunk, v));
    return values;
  }
  case Kind::Gather: {
    // Where there is one column, the number may be a value of that column.
    const unsigned from = node.inputs[0];
    Value *row = variesOverColumns(s.program.nodes[from].form) ? evaluateTile(from, chunk)[0]
                                                               : evaluateRow(from);
    loads[{number, chunk.number}] = ++loadsMade;
    Value *id = b.CreateZExt(row, b.getInt64Ty());
    const TensorAccess &table = s.inputs[node.code];
    Value *offset = b.CreateMul(id, b.getInt64(table.rows.dims.front().stride));
    return loadChunk(elementPointer(inputs[node.code], offset, node.type), table, node.type,
                     inputAlignment[node.code], chunk.column);
  }
  case Kind::Rotate:
    loads[{number, chunk.number}] = ++loadsMade;
    return rotate(node, chunk);
  case Kind::Compare:
    if (noneOfThem && any_of(oneColumns, [&](const OneColumn &one) { return one.node == number; }))
      return SmallVector<Value *>(width, b.getFalse());
    break;
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

std::vector<unsigned> RowKernelEmitter::lastLoads(const Chunk &chunk, unsigned made) const {
  std::vector<unsigned> last(s.program.nodes.size(), 0);
  for (auto [i, node] : enumerate(s.program.nodes)) {
    if (!variesOverColumns(node.form))
      continue;
    if (auto it = loads.find({i, chunk.number}); it != loads.end() && it->second > made)
      last[i] = it->second;
    for (unsigned input : node.inputs)
      last[i] = std::max(last[i], last[input]);
  }
  return last;
}

Value *RowKernelEmitter::evaluate(unsigned number) {
  const RowNode &node = s.program.nodes[number];
  switch (node.kind) {
  case Kind::Input:
    return loadOne(node.form == RowForm::Row ? inputRows[node.code] : inputs[node.code], node.type);
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

Value *RowKernelEmitter::compute(const RowNode &node, ArrayRef<Value *> in) {
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
    return compare(static_cast<Predicate>(node.code), in[0], in[1], isFloat(type(0)),
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

Value *RowKernelEmitter::binary(RowBinary f, Value *x, Value *y, bool real) {
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
  case RowBinary::MulHigh:
    return math.mulHigh(x, y);
  case RowBinary::Xor:
    return b.CreateXor(x, y);
  }
  llvm_unreachable("eight operators");
}

Value *RowKernelEmitter::compare(Predicate p, Value *x, Value *y, bool real, bool truth) {
  using P = CmpInst::Predicate;
  auto choose = [&](P r, P i, P u) {
    return real ? b.CreateFCmp(r, x, y) : b.CreateICmp(truth ? u : i, x, y);
  };
  switch (p) {
  case Predicate::eq:
    return choose(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
  case Predicate::ne:
    return choose(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
  case Predicate::lt:
    return choose(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
  case Predicate::le:
    return choose(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
  case Predicate::gt:
    return choose(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
  case Predicate::ge:
    return choose(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
  }
  llvm_unreachable("six predicates");
}

Value *RowKernelEmitter::coordinateWithin(ArrayRef<int64_t> sizes, unsigned dim, Value *position) {
  int64_t inner = 1;
  for (int64_t size : sizes.drop_front(dim + 1))
    inner *= size;
  Type *type = position->getType();
  Value *at = b.CreateUDiv(position, ConstantInt::get(type, inner));
  if (dim > 0)
    at = b.CreateURem(at, ConstantInt::get(type, sizes[dim]));
  return b.CreateZExtOrTrunc(at, b.getInt32Ty());
}

Value *RowKernelEmitter::rowCoordinate(unsigned dim) {
  return coordinateWithin(s.program.domain.rowShape, dim, currentRow);
}

Value *RowKernelEmitter::coordinate(unsigned dim, const Chunk &chunk, int64_t v) {
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

//===-- The next row ------------------------------------------------------------------------===//

void RowKernelEmitter::prefetch(Value *row) {
  for (auto [i, input] : enumerate(s.program.inputs)) {
    if (input.form != RowForm::Tile || isGathered(i))
      continue;
    Value *base = elementPointer(inputs[i], offsetOf(s.inputs[i].rows, row), input.type);
    for (int64_t k = 0; k < kept; ++k) {
      Chunk chunk = keptChunk(row, k);
      prefetchChunk(coming[{i, k}], base, i, chunk.column);
    }
  }
}

void RowKernelEmitter::prefetchChunk(ComingChunk &to, Value *base, unsigned input, Value *column) {
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
    keepIn(to.numbers[v], b.CreateAlignedLoad(math.memoryType(type), elementPointer(base, at, type),
                                              Align(bytes)));
  }
}

void RowKernelEmitter::keepIn(AllocaInst *&memory, Value *value) {
  if (!memory) {
    BasicBlock &entry = function->getEntryBlock();
    memory = IRBuilder<>(&entry, entry.begin()).CreateAlloca(value->getType());
  }
  b.CreateStore(value, memory);
}

void RowKernelEmitter::takePrefetched() {
  arrived.clear();
  for (const auto &[key, chunk] : coming) {
    RowType type = s.program.inputs[key.first].type;
    SmallVector<Value *> values;
    for (AllocaInst *memory : chunk.numbers)
      values.push_back(math.fromMemory(valueIn(memory), type));
    auto *part = FixedVectorType::get(math.memoryType(type), 4 / storageBytes(type));
    for (AllocaInst *memory : chunk.words) {
      if (type == RowType::BF16) {
        append_range(values, pairOfBf16(valueIn(memory)));
        continue;
      }
      Value *word = b.CreateBitCast(valueIn(memory), part);
      for (unsigned v = 0; v < part->getNumElements(); ++v)
        values.push_back(math.fromMemory(b.CreateExtractElement(word, v), type));
    }
    arrived[key] = values;
  }
}

//===-- Rotation ----------------------------------------------------------------------------===//

SmallVector<Value *> RowKernelEmitter::rotate(const RowNode &node, const Chunk &chunk) {
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
  } else if (width == 1) { // as another rotation of the group needs it
    isFirst = b.CreateICmpEQ(b.CreateAnd(inHead, b.getInt32(1)), b.getInt32(0));
    other = at(b.CreateXor(chunk.column, b.getInt32(1)));
  } else {
    for (int64_t v = 0; v < width; ++v)
      other.push_back(x[v ^ 1]);
  }
  Value *position = node.inputs.empty()
                        ? b.CreateURem(chunk.row, b.getInt32(r.length))
                        : b.CreateFPToUI(evaluateRow(node.inputs[0]), b.getInt32Ty());
  if (r.period > 0)
    position = b.CreateURem(position, b.getInt32(r.period));
  position = b.CreateUIToFP(position, b.getDoubleTy());
  Value *pair = r.halfSplit ? b.CreateURem(inHead, b.getInt32(half)) : b.CreateLShr(inHead, 1);
  int64_t pairs =
      r.halfSplit || width == 1 ? width : width / 2; // of this chunk; the table has whole chunks
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
    if (isFirst)
      signedSin =
          r.inverse ? b.CreateSelect(isFirst, sin, minus) : b.CreateSelect(isFirst, minus, sin);
    else
      signedSin = (v % 2 == 0) != r.inverse ? minus : sin;
    values.push_back(b.CreateFAdd(b.CreateFMul(x[v], cos), b.CreateFMul(other[v], signedSin)));
  }
  return values;
}

Value *RowKernelEmitter::frequencyTable(const Rotation &r, int64_t pairs) {
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

} // namespace hydra::cuda
