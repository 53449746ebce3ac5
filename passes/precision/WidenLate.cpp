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
  auto from = dyn_cast<FloatType>(elementOf(cast.getX()));
  return from && from.getWidth() < 32 && elementOf(cast.getResult()).isF32();
}

bool isMove(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision && precision.precisionClass() == Precision::Move && op->getNumResults() == 1 &&
         op->getNumOperands() > 0;
}

/// The type that the numbers of a value had before they were widened and moved; null where others
/// come in.
Type sourceType(Value v) {
  Operation *op = v.getDefiningOp();
  if (auto cast = dyn_cast_or_null<CastOp>(op))
    return isWidening(cast) ? elementOf(cast.getX()) : Type();
  if (!op || !isMove(op))
    return {};
  const Type type = sourceType(op->getOperand(0));
  const bool isSame = llvm::all_of(op->getOperands().drop_front(),
                                   [&](Value operand) { return sourceType(operand) == type; });
  return isSame ? type : Type();
}

/// A value of which `sourceType` knows the type, in that type.
Value narrowForm(Value v) {
  Operation *op = v.getDefiningOp();
  if (auto cast = dyn_cast<CastOp>(op))
    return cast.getX();
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, narrowForm(operand));
  OpBuilder b(op);
  Operation *moved = b.clone(*op, operands);
  Value result = moved->getResult(0);
  result.setType(build::typeOf(result).clone(elementOf(moved->getOperand(0))));
  return result;
}

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
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front()))
        widenBehind(&op);
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
  /// Moves the narrow form of what is moved, and widens the result.
  void widenBehind(Operation *op) {
    if (!isMove(op) || llvm::none_of(op->getUses(), takesCast) || !sourceType(op->getResult(0)))
      return;
    Value wide = op->getResult(0), narrow = narrowForm(wide);
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Value widened = build::cast(b, madeBy(kPass, op->getLoc()), narrow, elementOf(wide));
    replaceReads(wide, narrow, widened);
    ++moves;
  }

  /// The type in which all loops over a body could read a sequence; null where they should not.
  static Type narrowType(ArrayRef<LoopOp> users, unsigned number) {
    EntryOp body = LoopOp(users.front()).getEntry();
    const Type type = sourceType(LoopOp(users.front()).getSequences()[number]);
    const bool isPossible = type && llvm::all_of(users, [&](LoopOp loop) {
                              return sourceType(loop.getSequences()[number]) == type;
                            });
    return isPossible && joinsKernels(body.getBody().getArgument(number)) ? type : Type();
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
    for (LoopOp loop : users)
      loop->setOperand(number, narrowForm(loop.getSequences()[number]));
    Value chunk = body.getBody().getArgument(number);
    const Type wide = elementOf(chunk);
    body.setArgumentType(number, build::typeOf(chunk).clone(type));
    OpBuilder b = OpBuilder::atBlockBegin(&body.getBody().front());
    Value widened = build::cast(b, madeBy(kPass, body.getLoc()), chunk, wide);
    chunk.replaceAllUsesExcept(widened, widened.getDefiningOp());
    ++sequences;
    // Behind moves, as elsewhere.
    for (Operation &op : llvm::make_early_inc_range(body.getBody().front()))
      widenBehind(&op);
  }
};

} // namespace
} // namespace hydra
