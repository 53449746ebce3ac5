// The state of delayed scales, what is made of it, and what becomes of it.
#include "passes/precision/AmaxHistory.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"

#include <limits>

using namespace mlir;

namespace hydra {

namespace {

constexpr StringLiteral kPass = "hydra-quantize-matmuls";
Location ofHistory(EntryOp entry, Phase phase) {
  return withCategory(withPhase(madeBy(kPass, entry.getLoc()), phase), Category::workspace);
}

Value read(OpBuilder &b, Location loc, StateOp state) {
  return UseOp::create(b, loc, state.getBoundType(), state.getSymName());
}

Value compare(OpBuilder &b, Location loc, Value x, Predicate is, double bound) {
  return CompareOp::create(b, loc, x, build::constant(b, loc, x.getType(), bound), is);
}

void addUpdate(EntryOp entry, StateOp state, Value value) {
  ReturnOp end = entry.getReturn();
  SmallVector<Attribute> updated(end.getUpdated().begin(), end.getUpdated().end());
  updated.push_back(FlatSymbolRefAttr::get(state));
  end.getValuesMutable().append(value);
  end.setUpdatedAttr(Builder(end.getContext()).getArrayAttr(updated));
}

/// The largest on any rank of what is of all operands, [operands].
Value overRanks(OpBuilder &b, Location loc, MeshAttr mesh, Value amax) {
  const int64_t operands = build::shapeOf(amax)[0];
  for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes())) {
    if (size == 1)
      continue;
    amax = AllGatherOp::create(b, loc, build::reshape(b, loc, amax, {1, operands}),
                               b.getI64IntegerAttr(0), axis, b.getI64IntegerAttr(size),
                               b.getI64IntegerAttr(0));
    amax = build::largest(b, loc, amax, {0});
  }
  return amax;
}

/// The variables that a value is made of by casts and by moves alone; `name` for each.
void addVariables(Value value, std::string &text) {
  Operation *op = value.getDefiningOp();
  if (auto use = dyn_cast_or_null<UseOp>(op)) {
    text += " " + use.getVariable().str();
    return;
  }
  if (isa_and_nonnull<CastOp, ReshapeOp, TransposeOp, SliceOp, ConcatOp>(op))
    for (Value from : op->getOperands())
      addVariables(from, text);
}

} // namespace

/// In the middle of what training begins with, on a logarithmic scale. As e4m3 a weight or an
/// activation then keeps all its digits from 2^-10 to 28; as e5m2 the gradient of a mean over
/// tokens does from 2^-34 to 2^-5.
double AmaxHistory::assumed(OperandKind kind) {
  return kind == OperandKind::Gradient ? 0x1p-5 : 0x1p4;
}

/// Scales are no state of the model, but like what multiplies a loss state of how it is trained:
/// files of parameters need not have them.
FailureOr<StateOp> AmaxHistory::state(EntryOp entry, StringRef name, ArrayRef<int64_t> shape,
                                      VariableRole role) {
  const auto type = RankedTensorType::get(shape, Float32Type::get(model.getContext()));
  if (Operation *existing = model.lookupSymbol(name)) {
    auto found = dyn_cast<StateOp>(existing);
    if (!found || found.getRole() != role)
      return existing->emitOpError()
             << "@" << name << " has the name of the state of delayed scales";
    if (found.getBoundType() != type)
      return entry.emitOpError()
             << "@" << entry.getSymName() << " quantizes " << shape.front()
             << " values, another program " << found.getBoundType().getDimSize(0)
             << "; expected as many in all programs that share the history of delayed scales";
    return found;
  }
  OpBuilder b(*model.getBody().getOps<EntryOp>().begin());
  return StateOp::create(b, ofHistory(entry, Phase::optimizer), b.getStringAttr(name),
                         b.getI64ArrayAttr(shape), TypeAttr::get(type.getElementType()),
                         InitAttr::get(b.getContext(), InitKind::zeros, {}), StringAttr(),
                         Attribute(), StringAttr(), VariableRoleAttr::get(b.getContext(), role));
}

AmaxHistory::Quantized AmaxHistory::quantize(OpBuilder &b, Location loc, Value value,
                                             OperandKind kind, Type format, Value magnitudes) {
  OpBuilder first = OpBuilder::atBlockBegin(magnitudes.getParentBlock());
  auto scale = ConstantOp::create(first, loc, RankedTensorType::get({}, b.getF32Type()), 1.0);
  Value elements = QuantizeOp::create(b, loc, withoutInfinities(b, loc, value), scale,
                                      TypeAttr::get(format), UnitAttr());
  groups[{kind, format}].push_back({scale, magnitudes, elements});
  std::string &text = order.emplace_back();
  llvm::raw_string_ostream(text) << static_cast<int>(kind) << ' ' << format;
  addVariables(value, text);
  return {elements, scale};
}

/// Of an infinity the scale of its own step would be infinite; a conversion would make it the
/// largest number. x + 0 x is x where that is finite, and NaN where it is not.
Value AmaxHistory::withoutInfinities(OpBuilder &b, Location loc, Value value) {
  return AddOp::create(b, loc, value, build::scale(b, loc, value, 0.0));
}

/// Rows are numbered in the order of operands: programs that have others, such as those of phases,
/// would take each other's magnitudes. Which weights are multiplied, and when, tells them apart.
LogicalResult AmaxHistory::checkOrder(EntryOp entry) {
  SmallVector<std::string> own = std::exchange(order, {});
  if (firstOrder.empty())
    firstOrder = std::move(own);
  else if (firstOrder != own)
    return entry.emitOpError()
           << "@" << entry.getSymName() << " quantizes other values than another program, or in "
           << "another order; expected the same in all programs that share the history of delayed "
           << "scales";
  return success();
}

LogicalResult AmaxHistory::finish(EntryOp entry) {
  if (groups.empty())
    return success();
  auto all = groups.takeVector();
  llvm::stable_sort(all,
                    [](const auto &x, const auto &y) { return x.first.first < y.first.first; });
  int64_t operands = 0;
  for (auto &[form, group] : all) {
    operands += static_cast<int64_t>(group.size());
    // Weights are the same on all ranks, so this order is too; it lets them be reduced together.
    // How many numbers they have comes first: other flags may see them in other shapes, and a
    // history is read by plans of all flags.
    const auto size = [](const Operand &operand) {
      return std::pair(build::typeOf(operand.elements).getNumElements(),
                       build::shapeOf(operand.magnitudes)[0]);
    };
    if (form.first == OperandKind::Weight)
      llvm::stable_sort(group,
                        [&](const Operand &x, const Operand &y) { return size(x) < size(y); });
  }
  for (auto &[form, group] : all)
    groups.try_emplace(form, std::move(group));

  FailureOr<StateOp> history =
      state(entry, kHistory, {operands, steps}, VariableRole::amax_history);
  if (failed(history) || failed(checkOrder(entry)))
    return failure();
  makeScales(entry, *history);
  Value amax = findLargest(entry);
  groups.clear();
  if (entry.getStage() == ProgramStage::train)
    return shift(entry, *history, amax);

  FailureOr<StateOp> step = state(entry, kStep, {operands}, VariableRole::step_sum);
  if (failed(step))
    return failure();
  OpBuilder b(entry.getReturn());
  const Location loc = ofHistory(entry, Phase::optimizer);
  addUpdate(entry, *step, MaxOp::create(b, loc, read(b, loc, *step), amax));
  auto entries = model.getBody().getOps<EntryOp>();
  auto ending =
      llvm::find_if(entries, [](EntryOp other) { return other.getStage() == ProgramStage::apply; });
  if (ending == entries.end())
    return entry.emitOpError() << "@" << entry.getSymName()
                               << " has no program that ends its step: expected one of stage apply";
  EntryOp apply = *ending;
  if (llvm::is_contained(apply.getReturn().getUpdated(), FlatSymbolRefAttr::get(*history)))
    return success(); // of another phase of the run
  b.setInsertionPoint(apply.getReturn());
  Value found = read(b, loc, *step);
  if (failed(shift(apply, *history, found)))
    return failure();
  addUpdate(apply, *step, build::constant(b, loc, found.getType(), 0.0));
  return success();
}

double AmaxHistory::timesOf(EntryOp entry, OperandKind kind) const {
  return kind == OperandKind::Gradient && entry.getStage() == ProgramStage::accumulate
             ? accumulation
             : 1.0;
}

Value AmaxHistory::scales(OpBuilder &b, Location loc, Value amax, OperandKind kind, Type format,
                          double times) {
  Value remembered = compare(b, loc, amax, Predicate::gt, 0.0);
  Value usual = build::constant(b, loc, amax.getType(), assumed(kind));
  amax = SelectOp::create(b, loc, remembered, amax, usual);
  if (times != 1.0)
    amax = build::scale(b, loc, amax, times);
  return QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(format));
}

/// Back through what `makeScales` writes.
std::optional<int64_t> AmaxHistory::rowOf(Value scale, StateOp history) {
  int64_t row = 0;
  for (Operation *op = scale.getDefiningOp(); op; op = scale.getDefiningOp()) {
    if (auto use = dyn_cast<UseOp>(op))
      return use.lookup() == history ? std::optional(row) : std::nullopt;
    if (auto part = dyn_cast<SliceOp>(op))
      row += part.getAxis() == 0 ? static_cast<int64_t>(part.getStart()) : 0;
    else if (!isa<ReshapeOp, BroadcastOp, QuantizationScaleOp, MulOp, SelectOp, ReduceMaxOp>(op))
      return std::nullopt;
    auto remembered = dyn_cast<SelectOp>(op);
    scale = remembered ? remembered.getA() : op->getOperand(0);
  }
  return std::nullopt;
}

void AmaxHistory::makeScales(EntryOp entry, StateOp history) {
  const Location loc = ofHistory(entry, Phase::forward);
  OpBuilder b = OpBuilder::atBlockBegin(&entry.getBody().front());
  Value largestOf = build::largest(b, loc, read(b, loc, history), {1});
  int64_t first = 0;
  for (auto &[form, group] : groups) {
    const auto count = static_cast<int64_t>(group.size());
    // A matmul reads its scale where it lies, and not everywhere (kScaleBytes).
    constexpr int64_t kCopies = kScaleBytes / sizeof(float);
    Value amax = build::broadcast(
        b, loc,
        build::reshape(b, loc, build::slice(b, loc, largestOf, 0, first, count), {count, 1}),
        {count, kCopies});
    Value all = scales(b, loc, amax, form.first, form.second, timesOf(entry, form.first));
    for (auto [i, operand] : llvm::enumerate(group)) {
      Value own =
          build::slice(b, loc, build::slice(b, loc, all, 0, static_cast<int64_t>(i), 1), 1, 0, 1);
      operand.scale.replaceAllUsesWith(build::reshape(b, loc, own, {}));
    }
    first += count;
  }
  for (auto &[form, group] : groups) // not before: the builder stands in front of one of them
    for (Operand &operand : group)
      operand.scale.erase();
}

/// Of each operand the largest magnitude on this rank, [operands] f32. Those of one number of rows
/// are reduced at once, where the last of them has been rounded (in front of that they would keep
/// the two apart), so that not the numbers of all rows are kept until a program ends.
Value AmaxHistory::findLargest(EntryOp entry) {
  const Location loc = ofHistory(entry, Phase::optimizer);
  OpBuilder b(entry.getContext());
  SmallVector<Value> parts;
  for (auto &[form, group] : groups)
    for (ArrayRef<Operand> rest = group; !rest.empty();) {
      const RankedTensorType type = build::typeOf(rest.front().magnitudes);
      const ArrayRef<Operand> same = rest.take_while(
          [&](const Operand &operand) { return operand.magnitudes.getType() == type; });
      rest = rest.drop_front(same.size());
      const Operand &last = *llvm::max_element(same, [](const Operand &x, const Operand &y) {
        return x.elements.getDefiningOp()->isBeforeInBlock(y.elements.getDefiningOp());
      });
      b.setInsertionPointAfterValue(last.elements);
      const auto count = static_cast<int64_t>(same.size());
      Value all = build::concat(
          b, loc,
          llvm::map_to_vector(same, [](const Operand &operand) { return operand.magnitudes; }), 0);
      if (type.getNumElements() > 1)
        all = build::largest(b, loc, build::reshape(b, loc, all, {count, type.getNumElements()}),
                             {1});
      all = build::cast(b, loc, all, b.getF32Type());
      const double times = timesOf(entry, form.first);
      parts.push_back(times == 1.0 ? all : build::scale(b, loc, all, 1.0 / times));
    }
  b.setInsertionPoint(entry.getReturn());
  return build::concat(b, loc, parts, 0);
}

/// The history [operands, N] with what a rank has found in a step, [operands], and others with it,
/// unless the update is refused.
LogicalResult AmaxHistory::shift(EntryOp entry, StateOp history, Value amax) {
  auto guards = entry.getBody().front().getOps<GuardOp>();
  if (guards.empty())
    return entry.emitOpError() << "@" << entry.getSymName()
                               << " has no update whose guard the history of scales could follow";
  const Location loc = ofHistory(entry, Phase::optimizer);
  OpBuilder b(entry.getReturn());
  if (std::optional<MeshAttr> mesh = model.getMesh())
    amax = overRanks(b, loc, *mesh, amax);
  Value old = read(b, loc, history);
  Value moved = shifted(b, loc, old, amax);
  addUpdate(entry, history, GuardOp::create(b, loc, (*guards.begin()).getOk(), moved, old));
  return success();
}

/// What is zero or not finite is not remembered.
Value AmaxHistory::shifted(OpBuilder &b, Location loc, Value rows, Value newest) {
  const ArrayRef<int64_t> shape = build::shapeOf(rows);
  newest = build::reshape(b, loc, newest, {shape[0], 1});
  SmallVector<Value> columns{newest};
  if (shape[1] > 1)
    columns.push_back(build::slice(b, loc, rows, 1, 0, shape[1] - 1));
  Value moved = build::concat(b, loc, columns, 1);
  Value ofEach = build::broadcast(b, loc, newest, shape);
  for (Value taken : {compare(b, loc, ofEach, Predicate::gt, 0.0),
                      compare(b, loc, ofEach, Predicate::le, std::numeric_limits<float>::max())})
    moved = SelectOp::create(b, loc, taken, moved, rows);
  return moved;
}

} // namespace hydra
