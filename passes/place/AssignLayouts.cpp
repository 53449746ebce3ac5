// hydra-assign-layouts: reshapes, transposes, slices and broadcasts become views or explicit
// copies.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
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
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      made.clear();
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
        ++position;
        auto storage = dyn_cast<StorageOpInterface>(op);
        if (storage && storage.viewedOperand())
          makeView(storage);
        else if (!isa<ReturnOp>(op) && !op.hasAttr(kAdjacentAttr))
          makeAcceptable(&op);
      }
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
      if (state && !state.followsParameter())
        return {};
      names.push_back(use.getVariableAttr().getAttr());
    }
    return names;
  }

  /// A value whose elements lie so that `fits` takes their strides: of what it is a view of, the
  /// least part that will do is copied, and seen as the value again. What was copied for an
  /// operation shortly before is read once more.
  Value copied(Operation *before, Value v, llvm::function_ref<bool(ArrayRef<int64_t>)> fits) {
    SmallVector<Operation *> views; // from the value to the source
    size_t least = 0;               // views of what is copied
    int64_t elements = build::typeOf(v).getNumElements();
    for (Value source = v; useViews && isView(source.getDefiningOp());) {
      views.push_back(source.getDefiningOp());
      source = viewed(views.back());
      if (build::typeOf(source).getNumElements() >= elements)
        continue;
      SmallVector<int64_t> strides = denseStrides(build::shapeOf(source));
      bool possible = true;
      for (Operation *view : llvm::reverse(views)) {
        FailureOr<StridedView> seen = cast<StorageOpInterface>(view).view(strides);
        possible &= succeeded(seen);
        if (!possible)
          break;
        strides = seen->strides;
      }
      if (possible && fits(strides)) {
        least = views.size();
        elements = build::typeOf(source).getNumElements();
      }
    }
    Value source = least == 0 ? v : viewed(views[least - 1]);
    auto &[copy, at] = made[source];
    OpBuilder b(before);
    if (!copy || at + kKept < position) {
      copy = CopyOp::create(b, madeBy(kPass, before->getLoc()), source);
      ++copies;
    }
    at = position;
    Value seen = copy;
    for (Operation *view : llvm::reverse(ArrayRef(views).take_front(least))) {
      IRMapping operands;
      operands.map(viewed(view), seen);
      seen = b.clone(*view, operands)->getResult(0);
    }
    return seen;
  }

  static bool isView(Operation *op) { return op && op->hasAttr(kViewAttr); }
  static Value viewed(Operation *view) {
    return view->getOperand(*cast<StorageOpInterface>(view).viewedOperand());
  }

  /// The result of a shape operation as a view, of a copy of its operand if need be. Where results
  /// are no views, the operation copies from the view.
  void makeView(StorageOpInterface op) {
    OpOperand &operand = op->getOpOperand(*op.viewedOperand());
    if (failed(op.view(layoutOf(operand.get()).view.strides)))
      operand.set(copied(op, operand.get(),
                         [&](ArrayRef<int64_t> strides) { return succeeded(op.view(strides)); }));
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
      if (accepts(wanted, build::shapeOf(operand.get()), have.view.strides) ||
          isCutWhereItLies(operand, have.view.strides))
        continue;
      operand.set(copied(op, operand.get(), [&](ArrayRef<int64_t> strides) {
        return accepts(wanted, build::shapeOf(operand.get()), strides);
      }));
    }
  }

  /// Operations behind an operation that read its copy as well.
  static constexpr int64_t kKept = 64;

  int64_t position = 0;                             ///< of the operation
  DenseMap<Value, std::pair<CopyOp, int64_t>> made; ///< copies, and where they are read last
};

} // namespace
} // namespace hydra
