// The values of a program's nodes, for 16 columns at once or one for a row or the whole group.
#include "compiler/codegen/cpu/RowCodegen.h"

using namespace llvm;

namespace hydra::cpu {

Value *RowCodegen::evaluate(unsigned number, Tile &tile) {
  tile.values.resize(s.program.nodes.size());
  if (tile.values[number])
    return tile.values[number];
  const RowNode &n = node(number);
  Value *value;
  if (!variesOverColumns(n.form)) {
    value = memory.splat(ones[number]);
  } else if (sweep && sweep->reads[number]) {
    value = memory.loadVector(bufferPointer(number, tile.chunk), RowType::F32, nullptr);
  } else {
    switch (n.kind) {
    case Kind::Input:
      value = memory.load(inputRows[n.code], s.inputs[n.code], n.type, tile.chunk);
      break;
    case Kind::Index:
      value = index(n.code, memory.laneColumns(tile.chunk), s.flat);
      break;
    case Kind::Gather:
      value = memory.load(tableRow(n, tile), s.inputs[n.code], n.type, tile.chunk);
      break;
    case Kind::Rotate:
      value = rotaries.at(number).rotate(inputRows[n.code], s.inputs[n.code],
                                         s.program.inputs[n.code].type, tile.chunk);
      break;
    default: {
      Values inputs;
      for (unsigned input : n.inputs)
        inputs.push_back(evaluate(input, tile));
      value = compute(n, inputs);
    }
    }
  }
  return tile.values[number] = value;
}

Value *RowCodegen::evaluateOne(unsigned number) {
  const RowNode &n = node(number);
  switch (n.kind) {
  case Kind::Input: {
    bool scalar = n.form == RowForm::Scalar;
    return memory.loadOne((scalar ? inputPointers : inputRows)[n.code], n.type);
  }
  case Kind::Constant:
    return isFloat(n.type)
               ? ConstantFP::get(b.getFloatTy(), n.value)
               : static_cast<Value *>(ConstantInt::getSigned(
                     cast<IntegerType>(math.valueType(n.type)), static_cast<int64_t>(n.value)));
  case Kind::Index:
    return index(n.code, row, true);
  default: {
    Values inputs;
    for (unsigned input : n.inputs)
      inputs.push_back(ones[input]);
    return compute(n, inputs);
  }
  }
}

/// Row-major positions count the dimensions from `dim` to the last row dimension or, where columns
/// are counted (also across rows, in the flat shape), to the last of all.
Value *RowCodegen::index(unsigned dim, Value *position, bool fromRows) {
  const RowDomain &domain = s.program.domain;
  SmallVector<int64_t> shape;
  if (fromRows)
    append_range(shape, domain.rowShape);
  else
    dim -= domain.rowShape.size();
  if (!fromRows || s.flat)
    append_range(shape, domain.innerShape);
  int64_t below = 1;
  for (int64_t size : ArrayRef(shape).drop_front(dim + 1))
    below *= size;
  Type *type = position->getType();
  if (below > 1)
    position = b.CreateUDiv(position, ConstantInt::get(type, below));
  if (dim > 0)
    position = b.CreateURem(position, ConstantInt::get(type, shape[dim]));
  return b.CreateTrunc(position, type->getWithNewType(b.getInt32Ty()));
}

/// The address of the gathered row of a table.
Value *RowCodegen::tableRow(const RowNode &n, Tile &tile) {
  // Where there is one column, the number may be a value of that column.
  const unsigned from = n.inputs[0];
  Value *number = variesOverColumns(node(from).form)
                      ? b.CreateExtractElement(evaluate(from, tile), uint64_t{0})
                      : ones[from];
  number = b.CreateSExt(number, b.getInt64Ty());
  return memory.elementPointer(inputPointers[n.code], n.type,
                               memory.offsetOf(s.inputs[n.code].rows, number));
}

Value *RowCodegen::bufferPointer(unsigned number, const Chunk &chunk) {
  return memory.elementPointer(buffers[s.buffer[number]], RowType::F32, chunk.column);
}

//===-- Arithmetic --------------------------------------------------------------------------===//

static Value *binaryFloat(IRBuilderBase &b, VectorMath &math, RowBinary f, Value *x, Value *y) {
  switch (f) {
  case RowBinary::Add:
    return b.CreateFAdd(x, y);
  case RowBinary::Sub:
    return b.CreateFSub(x, y);
  case RowBinary::Mul:
    return b.CreateFMul(x, y);
  case RowBinary::Div:
    return b.CreateFDiv(x, y);
  case RowBinary::Max:
    return math.max(x, y);
  case RowBinary::Min:
    return math.min(x, y);
  case RowBinary::MulHigh:
  case RowBinary::Xor:
    break;
  }
  llvm_unreachable("not of floating-point numbers");
}

static Value *binaryInt(IRBuilderBase &b, VectorMath &math, RowBinary f, Value *x, Value *y) {
  switch (f) {
  case RowBinary::Add:
    return b.CreateAdd(x, y);
  case RowBinary::Sub:
    return b.CreateSub(x, y);
  case RowBinary::Mul:
    return b.CreateMul(x, y);
  case RowBinary::Div:
    return b.CreateSDiv(x, y);
  case RowBinary::Max:
    return b.CreateBinaryIntrinsic(Intrinsic::smax, x, y);
  case RowBinary::Min:
    return b.CreateBinaryIntrinsic(Intrinsic::smin, x, y);
  case RowBinary::MulHigh:
    return math.mulHigh(x, y);
  case RowBinary::Xor:
    return b.CreateXor(x, y);
  }
  llvm_unreachable("eight operations");
}

static Value *compare(IRBuilderBase &b, Predicate p, bool floats, Value *x, Value *y) {
  static constexpr CmpInst::Predicate forFloats[] = {CmpInst::FCMP_OEQ, CmpInst::FCMP_UNE,
                                                     CmpInst::FCMP_OLT, CmpInst::FCMP_OLE,
                                                     CmpInst::FCMP_OGT, CmpInst::FCMP_OGE};
  static constexpr CmpInst::Predicate forInts[] = {CmpInst::ICMP_EQ,  CmpInst::ICMP_NE,
                                                   CmpInst::ICMP_SLT, CmpInst::ICMP_SLE,
                                                   CmpInst::ICMP_SGT, CmpInst::ICMP_SGE};
  return b.CreateCmp((floats ? forFloats : forInts)[static_cast<unsigned>(p)], x, y);
}

Value *RowCodegen::compute(const RowNode &n, ArrayRef<Value *> in) {
  auto typeOf = [&](unsigned i) { return node(n.inputs[i]).type; };
  auto asInt = [&](unsigned i) { return math.convert(in[i], typeOf(i), RowType::I32); };
  switch (n.kind) {
  case Kind::Unary:
    return math.unary(static_cast<RowUnary>(n.code), in[0]);
  case Kind::Binary: {
    auto f = static_cast<RowBinary>(n.code);
    return isFloat(n.type) ? binaryFloat(b, math, f, in[0], in[1])
                           : binaryInt(b, math, f, asInt(0), asInt(1));
  }
  case Kind::Compare: {
    auto p = static_cast<Predicate>(n.code);
    return isFloat(typeOf(0)) ? compare(b, p, true, in[0], in[1])
                              : compare(b, p, false, asInt(0), asInt(1));
  }
  case Kind::Select:
    return b.CreateSelect(in[0], in[1], in[2]);
  case Kind::Cast:
    return math.convert(in[0], typeOf(0), n.type);
  default:
    llvm_unreachable("loads and reductions are not computed from values");
  }
}

} // namespace hydra::cpu
