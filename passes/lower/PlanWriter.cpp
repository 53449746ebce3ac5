// The plan of a model as it grows: variables, scalars and kernels.
#include "passes/lower/PlanWriter.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/CountedNumbers.h"
#include "passes/lower/BufferCategory.h"
#include "passes/place/Layouts.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hydra {

PlanWriter::PlanWriter(ModelOp model, OpBuilder &at)
    : target(targetOf(model)), b(model.getContext()) {
  module =
      plan::PlanModuleOp::create(at, model.getLoc(), at.getStringAttr(model.getSymName()),
                                 model.getBoundAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
  b.setInsertionPointToEnd(&module.getBody().emplaceBlock());
  placeSideBySide(model);
  addMesh(model);
  for (Operation &op : model.getBody().front()) {
    FlatUnitAttr unit = isa<ParamOp, StateOp>(op) ? unitOf(&op) : FlatUnitAttr();
    if (unit)
      addMembers(&op, unit,
                 isa<ParamOp>(op) ? plan::Category::param : categoryOf(cast<StateOp>(op)));
    else if (auto param = dyn_cast<ParamOp>(op))
      addVariable(param, VariableRole::parameter, param.getBoundType(), param.getInit(),
                  b.getStringAttr(param.getGroup().value_or("default")), StringAttr(),
                  plan::Category::param);
    else if (auto state = dyn_cast<StateOp>(op))
      addVariable(state, state.getRole(), state.getBoundType(), state.getInit(), StringAttr(),
                  state.getOwnerAttr(), categoryOf(state));
  }
}

/// Where ranks ask which one they are, a buffer says it.
void PlanWriter::addMesh(ModelOp model) {
  std::optional<MeshAttr> mesh = model.getMesh();
  if (!mesh)
    return;
  DenseMap<StringRef, RankOp> asked;
  model.walk([&](RankOp rank) { asked.try_emplace(rank.getOver(), rank); });
  for (auto [name, size] : llvm::zip_equal(mesh->getAxes(), mesh->getSizes())) {
    Value buffer;
    if (RankOp rank = asked.lookup(name.getValue())) {
      buffer = addBuffer(build::typeOf(rank.getResult()), plan::Category::other, rank.getLoc());
      ranks[name.getValue()] = buffer;
    }
    plan::MeshAxisOp::create(b, model.getLoc(), name, b.getI64IntegerAttr(size), buffer);
  }
}

plan::ProgramOp PlanWriter::program(EntryOp entry) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&module.getBody().front());
  auto program = plan::ProgramOp::create(b, entry.getLoc(), b.getStringAttr(entry.getSymName()),
                                         ProgramRoleAttr::get(b.getContext(), entry.programRole()),
                                         b.getI64IntegerAttr(1), IntegerAttr(), IntegerAttr());
  if (!firstProgram)
    firstProgram = program;
  return program;
}

/// What runs count or draw has the name of its source; all else stays.
static plan::ScalarSource sourceOf(StringRef name, Type element) {
  return isCountedNumber(name, element) ? *plan::symbolizeScalarSource(name)
                                        : plan::ScalarSource::constant;
}

FailureOr<Value> PlanWriter::scalar(EntryOp entry, unsigned argument) {
  auto name = cast<StringAttr>(entry.getArgNames()[argument]);
  double value = *entry.getDefault(argument);
  plan::ScalarOp &scalar = scalars[name.getValue()];
  if (scalar && scalar.getValue().convertToDouble() != value)
    return entry.emitOpError() << "argument '" << name.getValue() << "' is " << value
                               << " unless given; in another program it is "
                               << scalar.getValue().convertToDouble();
  BlockArgument number = entry.getBody().getArgument(argument);
  Type element = build::typeOf(number).getElementType();
  if (scalar && cast<MemRefType>(scalar.getBuffer().getType()).getElementType() != element)
    return entry.emitOpError() << "argument '" << name.getValue()
                               << "' is of another type in another program";
  if (!scalar) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(firstProgram);
    Value buffer = addBuffer(build::typeOf(number), plan::Category::other, number.getLoc());
    scalar = plan::ScalarOp::create(
        b, number.getLoc(), name,
        plan::ScalarSourceAttr::get(b.getContext(), sourceOf(name.getValue(), element)),
        b.getF64FloatAttr(value), buffer);
  }
  return scalar.getBuffer();
}

plan::KernelOp PlanWriter::kernel(FusedOp group, ArrayRef<Type> layouts,
                                  const RowPartition &partition) {
  std::string key;
  llvm::raw_string_ostream os(key);
  AsmState names(group, OpPrintingFlags().useLocalScope());
  group.getBody().front().print(os, names);
  os << '|' << partition.rows << '|' << partition.grain << '|' << shapeText(group.getRows())
     << shapeText(group.getInner());
  for (Type layout : layouts)
    os << '|' << layout;
  plan::KernelOp &kernel = kernels[key];
  if (kernel)
    return kernel;
  std::string name = kernelName(group);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(firstProgram);
  kernel = plan::KernelOp::create(b, group.getLoc(), b.getStringAttr(name),
                                  b.getTypeArrayAttr(layouts), b.getI64IntegerAttr(partition.rows),
                                  b.getI64IntegerAttr(partition.grain), IntegerAttr(),
                                  IntegerAttr(), StringAttr(), DenseI64ArrayAttr(), IntegerAttr());
  OpBuilder inner(b.getContext());
  inner.setInsertionPointToEnd(&kernel.getBody().emplaceBlock());
  IRMapping mapping;
  for (Value input : group.getInputs())
    mapping.map(input, plan::OuterOp::create(inner, group.getLoc(), input.getType()));
  inner.clone(*group, mapping);
  return kernel;
}

plan::KernelOp PlanWriter::combineKernel(int64_t parts, int64_t columns, ArrayRef<Type> layouts,
                                         Location loc) {
  std::string key;
  llvm::raw_string_ostream(key) << "combine|" << parts << '|' << columns << '|' << layouts.back();
  plan::KernelOp &kernel = kernels[key];
  if (!kernel) {
    RowPartition partition = partitionCombine(parts, columns);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(firstProgram);
    kernel = plan::KernelOp::create(
        b, loc, b.getStringAttr(("combine_" + Twine(kernels.size() - 1)).str()),
        b.getTypeArrayAttr(layouts), b.getI64IntegerAttr(partition.rows),
        b.getI64IntegerAttr(partition.grain), b.getI64IntegerAttr(parts), IntegerAttr(),
        StringAttr(), DenseI64ArrayAttr(), IntegerAttr());
    kernel.getBody().emplaceBlock();
  }
  return kernel;
}

void PlanWriter::placeSideBySide(ModelOp model) {
  model.walk([&](ConcatOp concat) {
    auto nameOf = [](Value part) {
      return part.getDefiningOp<UseOp>().getVariableAttr().getAttr();
    };
    if (!concat->hasAttr(kAdjacentAttr) || wholes.count(nameOf(concat.getParts().front())))
      return;
    Value whole = addBuffer(build::typeOf(concat.getY()), plan::Category::param, concat.getLoc());
    wholes[nameOf(concat.getParts().front())] = whole;
    int64_t start = 0;
    for (Value part : concat.getParts()) {
      RankedTensorType type = build::typeOf(part);
      variables[nameOf(part)] = plan::ViewOp::create(
          b, part.getLoc(), MemRefType::get(type.getShape(), type.getElementType()), whole,
          b.getI64IntegerAttr(start));
      start += type.getNumElements();
    }
  });
}

Value PlanWriter::addBuffer(RankedTensorType type, plan::Category category, Location loc) {
  return plan::BufferOp::create(b, loc, MemRefType::get(type.getShape(), type.getElementType()),
                                plan::Segment::persistent, category, IntegerAttr());
}

void PlanWriter::addVariable(Operation *op, VariableRole role, RankedTensorType type, InitAttr init,
                             StringAttr group, StringAttr owner, plan::Category category) {
  StringAttr name = SymbolTable::getSymbolName(op);
  Value &buffer = variables[name];
  if (!buffer)
    buffer = addBuffer(type, category, op->getLoc());
  auto param = dyn_cast<ParamOp>(op);
  plan::VariableOp::create(b, op->getLoc(), name, VariableRoleAttr::get(b.getContext(), role),
                           buffer, init, group, owner, plan::MemberAttr(),
                           param ? param.getFrozenAttr() : UnitAttr(),
                           param && isInt4(param.getDtype()) ? b.getUnitAttr() : UnitAttr(),
                           param ? param.getAdapterAttr() : AdapterAttr());
}

void PlanWriter::addMembers(Operation *op, FlatUnitAttr unit, plan::Category category) {
  auto param = dyn_cast<ParamOp>(op);
  auto state = dyn_cast<StateOp>(op);
  Value &buffer = variables[SymbolTable::getSymbolName(op)];
  if (!buffer)
    buffer = addBuffer(param ? param.getBoundType() : state.getBoundType(), category, op->getLoc());
  const VariableRole role = param ? VariableRole::parameter : state.getRole();
  for (MemberAttr member : unit.getMembers())
    plan::VariableOp::create(
        b, op->getLoc(), b.getStringAttr(memberName(op, member)),
        VariableRoleAttr::get(b.getContext(), role), buffer,
        param || role == VariableRole::copy ? member.getInit() : state.getInit(),
        param ? b.getStringAttr(param.getGroup().value_or("default")) : StringAttr(),
        param ? StringAttr() : member.getName(),
        plan::MemberAttr::get(b.getContext(), member.getShape(), member.getOffset(),
                              unit.getPieces() > 1 ? unit.getOver() : StringAttr()),
        param ? param.getFrozenAttr() : UnitAttr(), /*packed=*/UnitAttr(),
        param ? member.getAdapter() : AdapterAttr());
}

std::string PlanWriter::kernelName(FusedOp group) {
  std::string name;
  unsigned more = 0;
  for (Operation &op : group.getBody().front().without_terminator()) {
    StringRef part = op.getName().stripDialect();
    if (isa<ConstantOp, BroadcastOp, ReshapeOp>(op) || StringRef(name).contains(part))
      continue;
    if (name.size() < 24)
      name += (name.empty() ? "" : "_") + part.str();
    else
      ++more;
  }
  if (name.empty())
    name = "move";
  return name + (more ? "_and_more" : "") + "_" + std::to_string(kernels.size() - 1);
}

} // namespace hydra
