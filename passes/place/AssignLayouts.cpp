// hydra-assign-layouts: reshapes, transposes, slices and broadcasts become views or explicit
// copies.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/place/Layouts.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-assign-layouts";

struct AssignLayouts : impl::AssignLayoutsBase<AssignLayouts> {
  using AssignLayoutsBase::AssignLayoutsBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    if (useViews)
      placeSideBySide(model);
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
        auto storage = dyn_cast<StorageOpInterface>(op);
        if (storage && storage.viewedOperand())
          makeView(storage);
        else if (!isa<ReturnOp>(op) && !op.hasAttr(kAdjacentAttr))
          makeAcceptable(&op);
      }
  }

private:
  /// Marks concatenations of whole variables along the first axis, unless one of them has another
  /// neighbour already.
  void placeSideBySide(ModelOp model) {
    DenseMap<Attribute, SmallVector<Attribute>> neighbours; // of a variable: all in its place
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto concat : entry.getBody().front().getOps<ConcatOp>()) {
        SmallVector<Attribute> parts = variables(concat);
        bool possible = !parts.empty() && concat.getAxis() == 0 &&
                        DenseSet<Attribute>(parts.begin(), parts.end()).size() == parts.size() &&
                        llvm::all_of(parts, [&](Attribute part) {
                          auto it = neighbours.find(part);
                          return it == neighbours.end() || it->second == parts;
                        });
        if (!possible)
          continue;
        for (Attribute part : parts)
          neighbours[part] = parts;
        concat->setAttr(kAdjacentAttr, UnitAttr::get(&getContext()));
        ++views;
      }
  }

  /// The parameters, or copies of them, that are joined; empty when anything else is.
  static SmallVector<Attribute> variables(ConcatOp concat) {
    SmallVector<Attribute> names;
    for (Value part : concat.getParts()) {
      auto use = part.getDefiningOp<UseOp>();
      if (!use)
        return {};
      auto state = dyn_cast<StateOp>(use.lookup());
      if (state && !state.isCopyOfParameter())
        return {};
      names.push_back(use.getVariableAttr().getAttr());
    }
    return names;
  }

  static Value dense(Operation *before, Value v) {
    OpBuilder b(before);
    return CopyOp::create(b, madeBy(kPass, before->getLoc()), v);
  }

  /// The result of a shape operation as a view, of a copy of its operand if need be. Where results
  /// are no views, the operation copies from the view.
  void makeView(StorageOpInterface op) {
    OpOperand &operand = op->getOpOperand(*op.viewedOperand());
    if (failed(op.view(layoutOf(operand.get()).view.strides))) {
      operand.set(dense(op, operand.get()));
      ++copies;
    }
    if (!useViews)
      return;
    op->setAttr(kViewAttr, UnitAttr::get(&getContext()));
    ++views;
  }

  void makeAcceptable(Operation *op) {
    auto storage = dyn_cast<StorageOpInterface>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      OperandLayout wanted =
          storage ? storage.operandLayout(operand.getOperandNumber()) : OperandLayout{};
      Layout have = layoutOf(operand.get());
      if (accepts(wanted, build::shapeOf(operand.get()), have.view.strides))
        continue;
      operand.set(dense(op, operand.get()));
      ++copies;
    }
  }
};

} // namespace
} // namespace hydra
