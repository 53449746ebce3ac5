// hydra-widen-late: narrow numbers are moved and read as they are, and widened in the kernels that
// compute with them.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_WIDENLATE
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-widen-late";

Type elementOf(Value v) { return build::typeOf(v).getElementType(); }

/// Whether a cast keeps every number.
bool isWidening(CastOp cast) {
  const Type from = elementOf(cast.getX());
  return (from.isBF16() || from.isF16()) && elementOf(cast.getResult()).isF32();
}

bool isMove(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision && precision.precisionClass() == Precision::Move && op->getNumResults() == 1 &&
         op->getNumOperands() > 0;
}

bool isView(Operation *op) {
  auto storage = dyn_cast<StorageOpInterface>(op);
  return storage && storage.viewedOperand();
}

/// What values were before they were widened and moved.
class NarrowForms {
public:
  /// The type of a value's numbers before; null where others come in.
  Type typeOf(Value v) {
    if (auto known = types.find(v); known != types.end())
      return known->second;
    const Type type = findType(v);
    types[v] = type;
    return type;
  }

  /// A value that has such a type, moved in it.
  Value of(Value v) {
    Operation *op = v.getDefiningOp();
    if (auto cast = dyn_cast<CastOp>(op))
      return cast.getX();
    if (Value known = forms.lookup(v))
      return known;
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, of(operand));
    OpBuilder b(op);
    Operation *moved = b.clone(*op, operands);
    Value result = moved->getResult(0);
    result.setType(build::typeOf(result).clone(elementOf(moved->getOperand(0))));
    return forms[v] = result;
  }

private:
  Type findType(Value v) {
    Operation *op = v.getDefiningOp();
    if (auto cast = dyn_cast_or_null<CastOp>(op))
      return isWidening(cast) ? elementOf(cast.getX()) : Type();
    if (!op || !isMove(op))
      return {};
    const Type type = typeOf(op->getOperand(0));
    const bool isSame = llvm::all_of(op->getOperands().drop_front(),
                                     [&](Value operand) { return typeOf(operand) == type; });
    return isSame ? type : Type();
  }

  DenseMap<Value, Type> types;
  DenseMap<Value, Value> forms;
};

/// Whether a cast of an operand becomes part of the kernel that reads it.
bool takesCast(OpOperand &use) {
  auto reader = dyn_cast<RowWiseOpInterface>(use.getOwner());
  return reader && reader.isRowWise() && !reader.needsOuterOperand(use.getOperandNumber());
}

/// Lets such readers of `wide` read `widened`, and those that only round it again, `narrow`.
void replaceReads(Value wide, Value narrow, Value widened) {
  for (OpOperand &use : llvm::make_early_inc_range(wide.getUses())) {
    Operation *user = use.getOwner();
    if (user == widened.getDefiningOp() || !takesCast(use))
      continue;
    if (auto cast = dyn_cast<CastOp>(user);
        cast && elementOf(cast.getResult()) == elementOf(narrow))
      cast.getResult().replaceAllUsesWith(narrow);
    else
      use.set(widened);
  }
}

struct WidenLate : impl::WidenLateBase<WidenLate> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      widenBehindMoves(entry);
    llvm::MapVector<Operation *, SmallVector<LoopOp>> loops; // by body
    model.walk([&](LoopOp loop) { loops[loop.getEntry()].push_back(loop); });
    for (auto &[body, users] : loops)
      for (unsigned i = 0; i < users.front().getSequences().size(); ++i)
        if (const Type type = narrowType(users, i))
          widenChunk(cast<EntryOp>(body), users, i, type);
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      eraseDead(entry.getBody().front());
  }

private:
  /// Moves the narrow form of what is moved, and widens the results.
  void widenBehindMoves(EntryOp entry) {
    NarrowForms forms;
    for (Operation &op : llvm::make_early_inc_range(entry.getBody().front()))
      if (isMove(&op) && forms.typeOf(op.getResult(0)) && pays(&op))
        widenBehind(&op, forms);
  }

  /// Whether kernels read what is moved. What is no view should not be made in both types.
  static bool pays(Operation *move) {
    return !move->use_empty() && (isView(move) ? llvm::any_of(move->getUses(), takesCast)
                                               : llvm::all_of(move->getUses(), takesCast));
  }

  void widenBehind(Operation *move, NarrowForms &forms) {
    Value wide = move->getResult(0), narrow = forms.of(wide);
    OpBuilder b(move->getContext());
    b.setInsertionPointAfter(move);
    Value widened = build::cast(b, madeBy(kPass, move->getLoc()), narrow, elementOf(wide));
    replaceReads(wide, narrow, widened);
    ++moves;
  }

  /// The type in which all loops over a body could read a sequence; null where they should not.
  static Type narrowType(ArrayRef<LoopOp> users, unsigned number) {
    LoopOp first = users.front();
    NarrowForms forms;
    const Type type = forms.typeOf(first.getSequences()[number]);
    const bool isPossible = type && llvm::all_of(users, [&](LoopOp loop) {
                              return forms.typeOf(loop.getSequences()[number]) == type;
                            });
    return isPossible && joinsKernels(first.getEntry().getBody().getArgument(number)) ? type
                                                                                      : Type();
  }

  /// Whether a cast of a value, behind moves, becomes part of all kernels that read it, so that
  /// none is added to each iteration.
  static bool joinsKernels(Value v) {
    return llvm::all_of(v.getUses(), [](OpOperand &use) {
      Operation *user = use.getOwner();
      return isMove(user) ? joinsKernels(user->getResult(0)) : takesCast(use);
    });
  }

  void widenChunk(EntryOp body, ArrayRef<LoopOp> users, unsigned number, Type type) {
    NarrowForms forms;
    for (LoopOp loop : users)
      loop->setOperand(number, forms.of(loop.getSequences()[number]));
    Value chunk = body.getBody().getArgument(number);
    const Type wide = elementOf(chunk);
    body.setArgumentType(number, build::typeOf(chunk).clone(type));
    OpBuilder b = OpBuilder::atBlockBegin(&body.getBody().front());
    Value widened = build::cast(b, madeBy(kPass, body.getLoc()), chunk, wide);
    chunk.replaceAllUsesExcept(widened, widened.getDefiningOp());
    ++sequences;
    widenBehindMoves(body);
  }
};

} // namespace
} // namespace hydra
