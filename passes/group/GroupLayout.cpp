// Row-wise operations seen as one group.
#include "passes/group/GroupLayout.h"

#include "dialects/hydra/Build.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hydra {

bool isFreeSource(Operation *op) { return isa<ConstantOp, IotaOp, ReshapeOp, BroadcastOp>(op); }

bool isGroupable(Operation *op) {
  auto rowWise = dyn_cast<RowWiseOpInterface>(op);
  return rowWise && rowWise.isRowWise();
}

Value originOf(Value v) {
  while (auto *op = v.getDefiningOp()) {
    if (!isa<ReshapeOp, BroadcastOp>(op))
      break;
    v = op->getOperand(0);
  }
  return v;
}

//===-- The domain --------------------------------------------------------------------------===//

/// The splits of a shape into rows and inner dimensions, best first: the last dimension inside,
/// with others until there are columns enough for wide vectors. Others have both rows and columns.
static SmallVector<unsigned> splitsOf(ArrayRef<int64_t> shape) {
  constexpr int64_t enoughColumns = 64;
  unsigned rank = shape.size(), least = rank - std::min(rank, kMaxInnerDimensions);
  unsigned best = rank;
  for (int64_t columns = 1; best > least && columns < enoughColumns;)
    columns *= shape[--best];
  SmallVector<unsigned> splits{best};
  for (unsigned split = rank; split-- > std::max(least, 1u);)
    if (split != best)
      splits.push_back(split);
  return splits;
}

std::optional<GroupLayout> GroupLayout::find(ArrayRef<Operation *> members) {
  // The operation over most elements gives the domain, first of all one that leaves no choice.
  auto rank = [](Operation *op) {
    auto rowWise = cast<RowWiseOpInterface>(op);
    return std::pair(RefTensor::elements(rowWise.rowWiseShape()),
                     rowWise.rowDimensions().has_value());
  };
  auto leading = cast<RowWiseOpInterface>(
      *llvm::max_element(members, [&](Operation *a, Operation *b) { return rank(a) < rank(b); }));
  SmallVector<int64_t> shape = leading.rowWiseShape();
  std::optional<unsigned> fixed = leading.rowDimensions();
  GroupLayout layout(members);
  std::optional<GroupLayout> second;
  for (unsigned split : fixed ? SmallVector<unsigned>{*fixed} : splitsOf(shape)) {
    RowDomain candidate{SmallVector<int64_t>(ArrayRef(shape).take_front(split)),
                        SmallVector<int64_t>(ArrayRef(shape).drop_front(split))};
    if (!layout.assign(std::move(candidate)))
      continue;
    layout.collectInputs();
    if (!layout.readsReshapedBroadcast())
      return layout;
    if (!second)
      second = layout;
  }
  return second;
}

bool GroupLayout::assign(RowDomain candidate) {
  domain = std::move(candidate);
  forms.clear();
  return llvm::all_of(members, [&](Operation *op) { return assign(cast<RowWiseOpInterface>(op)); });
}

static bool sumsOverRows(RowWiseOpInterface op) {
  return llvm::any_of(llvm::seq(op->getNumResults()),
                      [&](unsigned i) { return op.sumsOverRows(i); });
}

/// Whether an operation of the group reads other rows or columns than its own: by index, or
/// rotated.
bool GroupLayout::anyReadsElsewhere() const {
  return llvm::any_of(members, [](Operation *op) {
    return llvm::any_of(llvm::seq(op->getNumOperands()), [&](unsigned i) {
      return cast<RowWiseOpInterface>(op).needsOuterOperand(i);
    });
  });
}

bool GroupLayout::assign(RowWiseOpInterface op) {
  for (RowForm form : fittingForms(domain, op)) {
    // What has no rows of its own is better computed once than in every row.
    bool perRow = form == RowForm::Row && (domain.rows() > 1 || domain.columns() == 1);
    if (form != RowForm::Tile && !perRow)
      continue;
    // A sum of one number per row has its own order of additions when it stands alone, so that is
    // where it stays: the bits must not depend on what is fused.
    if ((perRow || (domain.columns() == 1 && anyReadsElsewhere())) && members.size() > 1 &&
        sumsOverRows(op))
      continue;
    bool fits = llvm::all_of(llvm::enumerate(op->getOperands()), [&](auto operand) {
      return op.needsOuterOperand(operand.index())
                 ? !comesFromMember(operand.value())
                 : classify(operand.value(), formWithin(form, op.operandForm(operand.index()))) !=
                       Source::Impossible;
    });
    if (fits) {
      forms[op] = form;
      return true;
    }
  }
  return false;
}

//===-- Operands ----------------------------------------------------------------------------===//

bool GroupLayout::comesFromMember(Value v) const {
  return isMember.contains(originOf(v).getDefiningOp());
}

std::optional<RowForm> GroupLayout::operandForm(Operation *source, RowForm form) const {
  Value x = source->getOperand(0);
  if (isa<BroadcastOp>(source))
    return formBeforeBroadcast(domain, form, build::shapeOf(x),
                               build::shapeOf(source->getResult(0)));
  return fitsForm(domain, form, build::shapeOf(x)) ? std::optional(form) : std::nullopt;
}

bool GroupLayout::hasShapeOf(RowForm form, Value v) const {
  std::optional<RowForm> own = formOfShape(domain, build::shapeOf(v));
  return own && sameForm(domain, *own, form);
}

GroupLayout::Source GroupLayout::classify(Value v, RowForm form) const {
  Operation *op = v.getDefiningOp();
  if (op && isMember.contains(op)) {
    auto rowWise = cast<RowWiseOpInterface>(op);
    unsigned number = cast<OpResult>(v).getResultNumber();
    auto known = forms.find(op);
    bool readable = known != forms.end() && !rowWise.sumsOverRows(number) &&
                    sameForm(domain, form, formWithin(known->second, rowWise.resultForm(number)));
    return readable ? Source::Member : Source::Impossible;
  }
  if (isa_and_present<ConstantOp>(op))
    return Source::Copied;
  if (isa_and_present<IotaOp>(op))
    return hasShapeOf(form, v) ? Source::Copied : Source::Read;
  if (isa_and_present<ReshapeOp, BroadcastOp>(op)) {
    std::optional<RowForm> inner = operandForm(op, form);
    if (!inner)
      return comesFromMember(v) ? Source::Impossible : Source::Read;
    Source source = classify(op->getOperand(0), *inner);
    if (source == Source::Impossible)
      return source;
    // Of a reshaped input that is read which comes in a shape of the domain.
    bool view = source == Source::Read && isa<ReshapeOp>(op) &&
                !hasShapeOf(form, op->getOperand(0)) && hasShapeOf(form, v);
    return view ? Source::Read : Source::Copied;
  }
  return Source::Read;
}

void GroupLayout::collectInputs() {
  llvm::SmallSetVector<std::pair<Value, int>, 16> found; // form or -1
  std::function<void(Value, RowForm)> collect = [&](Value v, RowForm form) {
    Source source = classify(v, form);
    if (source == Source::Read)
      found.insert({v, static_cast<int>(form)});
    else if (source == Source::Copied && isa<ReshapeOp, BroadcastOp>(v.getDefiningOp()))
      collect(v.getDefiningOp()->getOperand(0), *operandForm(v.getDefiningOp(), form));
  };
  for (Operation *op : members) {
    auto rowWise = cast<RowWiseOpInterface>(op);
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (rowWise.needsOuterOperand(i))
        found.insert({operand, -1});
      else
        collect(operand, formWithin(forms.lookup(op), rowWise.operandForm(i)));
    }
  }
  inputs.clear();
  for (auto [value, form] : found)
    inputs.push_back({value, form < 0 ? std::nullopt : std::optional(static_cast<RowForm>(form))});
}

bool GroupLayout::isReshapedBroadcast(const GroupInput &input) const {
  constexpr int64_t kLeastBytes = 256 * 1024; // fewer are copied in less time than a launch takes
  Operation *op = input.value.getDefiningOp();
  if (!input.form || !op || (isa<BroadcastOp>(op) && hasShapeOf(*input.form, input.value)) ||
      bytesOf(input.value.getType()) < kLeastBytes)
    return false;
  while (isa_and_present<ReshapeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_present<BroadcastOp>(op);
}

bool GroupLayout::readsReshapedBroadcast() const {
  return llvm::any_of(inputs, [&](const GroupInput &input) { return isReshapedBroadcast(input); });
}

//===-- Results -----------------------------------------------------------------------------===//

bool GroupLayout::isUsedOutside(Value v) const {
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    if (isMember.contains(user))
      return false;
    return !isFreeSource(user) || isUsedOutside(user->getResult(0));
  });
}

SmallVector<Value> GroupLayout::liveResults() const {
  SmallVector<Value> live;
  for (Operation *op : members)
    for (Value result : op->getResults())
      if (isUsedOutside(result))
        live.push_back(result);
  return live;
}

static int64_t flopsOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost && op->getNumOperands() > 0 ? cost.flops() : 0;
}

//===-- Writing -----------------------------------------------------------------------------===//

Location GroupLayout::location() const {
  SetVector<Location> lines;
  for (Operation *op : members) {
    auto fused = dyn_cast<FusedLocWith<ScopeAttr>>(op->getLoc());
    if (fused)
      lines.insert(fused.getLocations().begin(), fused.getLocations().end());
    else
      lines.insert(op->getLoc());
  }
  // Where most of the work is.
  Operation *main = members.front();
  for (Operation *op : members)
    if (flopsOf(op) > flopsOf(main))
      main = op;
  Location loc = FusedLoc::get(lines.getArrayRef(), scopeOf(main->getLoc()), main->getContext());
  return members.size() > 1 ? madeBy("hydra-form-fusions", loc) : loc;
}

/// Writes the body of a group.
class GroupWriter {
public:
  explicit GroupWriter(const GroupLayout &layout)
      : layout(layout), domain(layout.domain), outside(layout.members.back()),
        inside(layout.members.back()->getContext()) {}

  FusedOp run() {
    Location loc = layout.location();
    SmallVector<Value> operands, live = layout.liveResults();
    for (const GroupInput &input : layout.inputs)
      operands.push_back(
          input.form ? build::reshape(outside, loc, input.value, shapeAs(input.value, *input.form))
                     : input.value);
    SmallVector<Type> types;
    for (Value v : live)
      types.push_back(build::typeOf(v).clone(shapeAs(v, formOf(v))));
    auto group = FusedOp::create(outside, loc, domain, operands, types);
    block = &group.getBlock();
    inside.setInsertionPointToEnd(block);
    for (Operation *op : layout.members)
      write(op);
    SmallVector<Value> yielded = llvm::map_to_vector(live, [&](Value v) {
      return build::reshape(inside, v.getLoc(), values.lookup(v), shapeAs(v, formOf(v)));
    });
    YieldOp::create(inside, loc, yielded);
    for (auto [v, result] : llvm::zip(live, group.getResults()))
      v.replaceAllUsesWith(build::reshape(outside, loc, result, build::shapeOf(v)));
    for (Operation *op : llvm::reverse(layout.members))
      erase(op);
    return group;
  }

private:
  using Source = GroupLayout::Source;

  RowForm formOf(Value result) const {
    auto op = cast<RowWiseOpInterface>(result.getDefiningOp());
    return formWithin(layout.forms.lookup(op),
                      op.resultForm(cast<OpResult>(result).getResultNumber()));
  }

  /// The shape in which a value of that form enters or leaves the group: its own if that will do.
  SmallVector<int64_t> shapeAs(Value v, RowForm form) const {
    return layout.hasShapeOf(form, v) ? SmallVector<int64_t>(build::shapeOf(v))
                                      : shapeOfForm(domain, form);
  }

  Value argument(const GroupInput &input) {
    return block->getArgument(llvm::find(layout.inputs, input) - layout.inputs.begin());
  }

  /// The value inside the group.
  Value get(Value v, RowForm form) {
    Source source = layout.classify(v, form);
    if (source == Source::Member)
      return values.lookup(v);
    Value &copy = copies[{v, static_cast<int>(form)}];
    if (copy)
      return copy;
    if (source == Source::Read)
      return copy = build::reshape(inside, v.getLoc(), argument({v, form}), build::shapeOf(v));
    Operation *op = v.getDefiningOp();
    IRMapping mapping;
    if (isa<ReshapeOp, BroadcastOp>(op))
      mapping.map(op->getOperand(0), get(op->getOperand(0), *layout.operandForm(op, form)));
    Value made = inside.clone(*op, mapping)->getResult(0);
    return copies[{v, static_cast<int>(form)}] = made; // `copy` may have moved
  }

  void write(Operation *op) {
    auto rowWise = cast<RowWiseOpInterface>(op);
    IRMapping mapping;
    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(
          rowWise.needsOuterOperand(i)
              ? argument({operand, std::nullopt})
              : get(operand, formWithin(layout.forms.lookup(op), rowWise.operandForm(i))));
    Operation *copy = inside.clone(*op, mapping);
    copy->setOperands(operands); // one value may be read in two forms
    for (auto [result, clone] : llvm::zip(op->getResults(), copy->getResults()))
      values[result] = clone;
  }

  /// Erases a member and the free sources that only copies of it still used.
  static void erase(Operation *op) {
    for (Value result : op->getResults())
      for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
        erase(user);
    op->erase();
  }

  const GroupLayout &layout;
  const RowDomain &domain;
  OpBuilder outside, inside;
  Block *block = nullptr;
  DenseMap<Value, Value> values; ///< of members
  DenseMap<std::pair<Value, int>, Value> copies;
};

FusedOp GroupLayout::build() const { return GroupWriter(*this).run(); }

} // namespace hydra
