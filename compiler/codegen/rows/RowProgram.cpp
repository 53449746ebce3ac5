// Records row-wise operations as a graph of numbers.
#include "compiler/codegen/rows/RowProgram.h"

#include "dialects/hydra/NumberFormats.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hydra {

std::optional<RowType> rowTypeOf(Type element) {
  const std::optional<support::DType> format = formatOf(element);
  for (RowType type : {RowType::F32, RowType::BF16, RowType::F16, RowType::E4M3, RowType::E5M2,
                       RowType::I8, RowType::I16, RowType::I32, RowType::I1})
    if (format == formatOf(type))
      return type;
  return std::nullopt;
}

support::DType formatOf(RowType type) {
  switch (type) {
  case RowType::F32:
    return support::DType::F32;
  case RowType::BF16:
    return support::DType::BF16;
  case RowType::F16:
    return support::DType::F16;
  case RowType::E4M3:
    return support::DType::E4M3;
  case RowType::E5M2:
    return support::DType::E5M2;
  case RowType::I8:
    return support::DType::I8;
  case RowType::I16:
    return support::DType::I16;
  case RowType::I32:
    return support::DType::I32;
  case RowType::I1:
    return support::DType::Bool;
  }
  llvm_unreachable("nine types");
}

unsigned storageBytes(RowType type) { return support::byteSize(formatOf(type)); }

//===-- Text --------------------------------------------------------------------------------===//

static void printNode(llvm::raw_ostream &os, const RowNode &node) {
  os << static_cast<int>(node.kind) << ' ' << static_cast<int>(node.form) << ' '
     << static_cast<int>(node.type) << ' ' << node.code;
  for (unsigned input : node.inputs)
    os << " %" << input;
  if (node.kind == RowNode::Kind::Constant)
    os << ' ' << llvm::format_hex(llvm::bit_cast<uint64_t>(node.value), 18);
  const Rotation &r = node.rotation;
  if (node.kind == RowNode::Kind::Rotate)
    os << ' ' << llvm::format_hex(llvm::bit_cast<uint64_t>(r.base), 18) << ' ' << r.halfSplit << ' '
       << r.inverse << ' ' << r.length << ' ' << r.period;
}

static void printShape(llvm::raw_ostream &os, ArrayRef<int64_t> shape) {
  os << '[';
  llvm::interleaveComma(shape, os);
  os << ']';
}

std::string RowProgram::key() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  printShape(os, domain.rowShape);
  printShape(os, domain.innerShape);
  for (const RowInput &input : inputs) {
    os << "\ni ";
    printShape(os, input.shape);
    os << static_cast<int>(input.type) << ' ' << (input.form ? static_cast<int>(*input.form) : -1);
  }
  for (const RowNode &node : nodes) {
    os << '\n';
    printNode(os, node);
  }
  for (const RowResult &result : results)
    os << "\nr " << static_cast<int>(result.form) << ' ' << static_cast<int>(result.type) << ' '
       << result.node;
  return text;
}

//===-- Recording ---------------------------------------------------------------------------===//

RowValue RowRecorder::add(RowNode node) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printNode(os, node);
  auto [entry, isNew] = known.try_emplace(text, program.nodes.size());
  if (isNew)
    program.nodes.push_back(std::move(node));
  return {entry->second};
}

RowForm RowRecorder::joined(ArrayRef<RowValue> values) const {
  bool rows = false, columns = false;
  for (RowValue v : values) {
    rows |= variesOverRows(form(v));
    columns |= variesOverColumns(form(v));
  }
  return rowForm(rows, columns);
}

RowValue RowRecorder::input(unsigned number) {
  const RowInput &input = program.inputs[number];
  RowNode node{RowNode::Kind::Input, *input.form, input.type};
  node.code = number;
  return add(node);
}

Type RowRecorder::elementType(RowValue v) const {
  return hydra::elementType(context, formatOf(type(v)));
}

RowValue RowRecorder::constant(double value, Type element) {
  RowNode node{RowNode::Kind::Constant, RowForm::Scalar, *rowTypeOf(element)};
  node.value = value;
  if (isFloat(node.type))
    node.value = support::rounded(formatOf(node.type), value);
  return add(node);
}

RowValue RowRecorder::index(unsigned dim) {
  bool row = dim < program.domain.rowShape.size();
  RowNode node{RowNode::Kind::Index, rowForm(row, !row), RowType::I32};
  node.code = dim;
  return add(node);
}

RowValue RowRecorder::unary(RowUnary f, RowValue x) {
  const bool takesInteger = f == RowUnary::Neg || f == RowUnary::OfBits;
  assert((isFloat(type(x)) || (takesInteger && type(x) == RowType::I32)) &&
         "functions are for numbers");
  const bool exact = f == RowUnary::Neg && type(x) != RowType::I8; // -(-128) is no I8
  RowNode node{RowNode::Kind::Unary, form(x),
               exact                 ? type(x)
               : f == RowUnary::Bits ? RowType::I32
                                     : RowType::F32};
  node.code = static_cast<unsigned>(f);
  node.inputs = {x.id};
  return add(node);
}

RowValue RowRecorder::binary(RowBinary f, RowValue a, RowValue b) {
  assert(isFloat(type(a)) == isFloat(type(b)) && "casts are explicit");
  RowNode node{RowNode::Kind::Binary, joined({a, b}), typeOf(f, a, b)};
  node.code = static_cast<unsigned>(f);
  node.inputs = {a.id, b.id};
  return add(node);
}

RowType RowRecorder::typeOf(RowBinary f, RowValue a, RowValue b) const {
  if (!isFloat(type(a)))
    return RowType::I32;
  auto isZero = [&](RowValue v) {
    const RowNode &node = program.nodes[v.id];
    return node.kind == RowNode::Kind::Constant && node.value == 0.0;
  };
  auto isZeroOrNan = [&](RowValue v) {
    const RowNode &node = program.nodes[v.id];
    return node.kind == RowNode::Kind::Binary &&
           static_cast<RowBinary>(node.code) == RowBinary::Mul &&
           llvm::any_of(node.inputs, [&](unsigned input) { return isZero({input}); });
  };
  switch (f) {
  case RowBinary::Max:
  case RowBinary::Min: // one of the two
    return type(a) == type(b) ? type(a) : RowType::F32;
  case RowBinary::Mul:
    return isZero(b) ? type(a) : isZero(a) ? type(b) : RowType::F32;
  case RowBinary::Add: // what is not finite becomes nan by x + 0 x
    return isZeroOrNan(b) ? type(a) : isZeroOrNan(a) ? type(b) : RowType::F32;
  default:
    return RowType::F32;
  }
}

RowValue RowRecorder::compare(Predicate p, RowValue a, RowValue b) {
  assert(isFloat(type(a)) == isFloat(type(b)) && "casts are explicit");
  RowNode node{RowNode::Kind::Compare, joined({a, b}), RowType::I1};
  node.code = static_cast<unsigned>(p);
  node.inputs = {a.id, b.id};
  return add(node);
}

RowValue RowRecorder::select(RowValue condition, RowValue a, RowValue b) {
  assert(isFloat(type(a)) == isFloat(type(b)) && "casts are explicit");
  // Of two numbers of a format it is one.
  RowNode node{RowNode::Kind::Select, joined({condition, a, b}),
               type(a) == type(b) ? type(a) : RowType::F32};
  node.inputs = {condition.id, a.id, b.id};
  return add(node);
}

RowValue RowRecorder::cast(RowValue x, Type to) {
  RowType target = *rowTypeOf(to);
  if (target == type(x))
    return x;
  RowNode node{RowNode::Kind::Cast, form(x), target};
  node.inputs = {x.id};
  return add(node);
}

RowValue RowRecorder::reduce(RowReduction r, RowValue tile) {
  assert(isFloat(type(tile)) && "reductions are for numbers");
  RowNode node{RowNode::Kind::Reduce, RowForm::Row, RowType::F32};
  node.code = static_cast<unsigned>(r);
  node.inputs = {tile.id};
  return add(node);
}

RowValue RowRecorder::sumRows(RowValue v, RowForm of) {
  assert(isFloat(type(v)) && "reductions are for numbers");
  RowNode node{RowNode::Kind::SumRows, rowForm(false, variesOverColumns(of)), RowType::F32};
  node.inputs = {v.id};
  return add(node);
}

RowValue RowRecorder::gather(unsigned operand, RowValue row) {
  RowNode node{RowNode::Kind::Gather, rowForm(variesOverRows(form(row)), true),
               program.inputs[operand].type};
  node.code = operand;
  node.inputs = {row.id};
  return add(node);
}

RowValue RowRecorder::rotate(unsigned operand, const Rotation &rotation,
                             std::optional<RowValue> position) {
  RowNode node{RowNode::Kind::Rotate, RowForm::Tile, RowType::F32};
  node.code = operand;
  node.rotation = rotation;
  if (position)
    node.inputs = {position->id};
  return add(node);
}

RowProgram RowRecorder::finish(ArrayRef<RowValue> values, std::vector<RowResult> results) {
  RowProgram done = std::move(program);
  std::vector<char> live(done.nodes.size(), false);
  for (RowValue v : values)
    live[v.id] = true;
  for (size_t i = live.size(); i-- > 0;)
    if (live[i])
      for (unsigned input : done.nodes[i].inputs)
        live[input] = true;
  std::vector<unsigned> renumbered(live.size());
  std::vector<RowNode> nodes;
  for (auto [i, node] : llvm::enumerate(done.nodes)) {
    if (!live[i])
      continue;
    for (unsigned &input : node.inputs)
      input = renumbered[input];
    renumbered[i] = nodes.size();
    nodes.push_back(std::move(node));
  }
  for (auto [result, value] : llvm::zip(results, values)) {
    result.node = renumbered[value.id];
    if (nodes[result.node].kind == RowNode::Kind::SumRows)
      continue;
    // The shape of a result may leave out a direction of extent 1 in which its values are computed.
    const RowForm own = nodes[result.node].form;
    result.form = rowForm(variesOverRows(result.form) || variesOverRows(own),
                          variesOverColumns(result.form) || variesOverColumns(own));
  }
  done.nodes = std::move(nodes);
  done.results = std::move(results);
  return done;
}

} // namespace hydra
