// Verification of what fused steps say of their neighbours.
#include "dialects/plan/FusedSteps.h"

#include "dialects/plan/BufferUsers.h"
#include "dialects/plan/KernelExpansion.h"
#include "dialects/plan/Ordering.h"

using namespace mlir;

namespace hydra::plan {

namespace {

/// The block of the list right behind another one; null where that is the last.
Operation *nextBlock(Operation *block) {
  Operation *next = block->getNextNode();
  while (next && !isa<BlockInterface>(next))
    next = next->getNextNode();
  return next;
}

/// The one right in front; null where that is the first.
Operation *previousBlock(Operation *block) {
  Operation *before = block->getPrevNode();
  while (before && !isa<BlockInterface>(before))
    before = before->getPrevNode();
  return before;
}

bool shareBytes(Value a, Value b) {
  return placeOf(a).buffer == placeOf(b).buffer && support::overlap(bytesOf(a), bytesOf(b));
}

/// Whether a step writes a value for which `holds`.
bool writesAny(StepInterface step, llvm::function_ref<bool(Value)> holds) {
  return llvm::any_of(llvm::zip(step.getArgs(), step.getAccesses()), [&](const auto &argument) {
    const auto [value, access] = argument;
    return access != kRead && holds(value);
  });
}

/// Whether a step reads bytes of a value.
bool reads(StepInterface step, Value value) {
  return llvm::any_of(llvm::zip(step.getArgs(), step.getAccesses()), [&](const auto &argument) {
    const auto [own, access] = argument;
    return access != kWrite && shareBytes(own, value);
  });
}

/// A step that makes what the step behind it computes: other parts may stand between the two.
LogicalResult verifyComputed(StepInterface step) {
  SmallVector<StepInterface> behind;
  Operation *whole = nextBlock(step);
  for (; isa_and_nonnull<StepInterface>(whole) && whole->hasAttr(kComputedAttr);
       whole = nextBlock(whole))
    behind.push_back(cast<StepInterface>(whole));
  if (auto matmul = dyn_cast_or_null<MatmulOp>(whole)) {
    if (matmul->hasAttr(kUpdatesAttr))
      return matmul.emitOpError("computes its operand, and launches use its sums; expected one");
    if (!behind.empty())
      return step.emitOpError("is part of a matmul, but does not stand right in front of it");
    if (!writesAny(step, [&](Value made) { return sameElements(made, matmul.getA()); }))
      return step.emitOpError("is part of the matmul behind it, but does not make its operand");
    return success();
  }
  auto attention = dyn_cast_or_null<CachedAttentionOp>(whole);
  if (!attention)
    return step.emitOpError("is part of the step behind it; expected a matmul or cached_attention");
  behind.push_back(cast<StepInterface>(attention.getOperation()));
  const auto isRead = [&](Value made) {
    return llvm::any_of(behind, [&](StepInterface reader) { return reads(reader, made); });
  };
  if (!writesAny(step, isRead))
    return step.emitOpError("is part of the attention behind it, but makes nothing that it reads");
  return success();
}

/// A step that makes values for so many launches right behind it, which alone use those of these
/// that they read.
LogicalResult verifyUsersBehind(Operation *step, StringRef attribute, ValueRange made) {
  auto said = step->getAttrOfType<IntegerAttr>(attribute);
  if (!said || made.empty())
    return step->emitOpError() << "has '" << attribute << "', but makes nothing for launches";
  const int64_t count = said.getInt();
  SmallPtrSet<Operation *, 4> group{step};
  SmallVector<StepInterface> parts;
  Operation *at = step;
  for (int64_t i = 0; i < count; ++i) {
    at = nextBlock(at);
    auto part = dyn_cast_or_null<LaunchOp>(at);
    if (!part || part->hasAttr(kComputedAttr))
      return step->emitOpError() << "has " << count << " launches as parts, but " << i
                                 << " stand right behind it";
    if (llvm::none_of(made, [&](Value value) { return reads(part, value); }))
      return part.emitOpError(
          "is part of the step in front of it, but reads nothing that it makes");
    group.insert(part);
    parts.push_back(part);
  }
  for (Value value : made) {
    if (llvm::none_of(parts, [&](StepInterface part) { return reads(part, value); }))
      continue;
    for (Operation *user : usersOf(placeOf(value).buffer.getBuffer()))
      if (!group.contains(user))
        return user->emitOpError("uses what is made for the parts of another step alone");
  }
  return success();
}

/// What a step touches of a buffer, where that is known exactly.
struct Touched {
  BufferOp buffer;
  support::ByteRange bytes;
  bool writes;

  bool needs(const Touched &other) const {
    return buffer == other.buffer && (writes || other.writes) && bytes.pitch == other.bytes.pitch &&
           support::overlap(bytes, other.bytes);
  }
};

/// The first of a batch of copies and fills, which do not need each other.
LogicalResult verifyTogether(Operation *first) {
  SmallVector<Touched> before;
  const Attribute batch = first->getAttr(kTogetherAttr);
  for (Operation *at = first; at && at->getAttr(kTogetherAttr) == batch; at = nextBlock(at)) {
    const size_t earlier = before.size();
    for (const BufferUse &use : usesOf(at)) {
      const Touched own{placeOf(use.value).buffer, bytesOf(use.value), use.writes};
      if (!own.bytes.exact)
        continue;
      if (llvm::any_of(ArrayRef(before).take_front(earlier),
                       [&](const Touched &other) { return own.needs(other); }))
        return at->emitOpError("is in one batch with a step that it must wait for");
      before.push_back(own);
    }
  }
  return success();
}

LogicalResult verifyFused(Operation *op) {
  if (op->hasAttr(kComputedAttr)) {
    auto step = dyn_cast<StepInterface>(op);
    return step ? verifyComputed(step) : op->emitOpError("is part of a step, but is none itself");
  }
  SmallVector<Value> made;
  if (op->hasAttr(kUpdatesAttr)) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      made = {matmul.getC()};
    return verifyUsersBehind(op, kUpdatesAttr, made);
  }
  if (op->hasAttr(kRotationsAttr)) {
    if (auto gradients = dyn_cast<AttentionGradOp>(op))
      made = {gradients.getDq(), gradients.getDk()};
    return verifyUsersBehind(op, kRotationsAttr, made);
  }
  if (Attribute batch = op->getAttr(kTogetherAttr)) {
    Operation *before = previousBlock(op);
    if (!before || before->getAttr(kTogetherAttr) != batch)
      return verifyTogether(op);
  }
  return success();
}

} // namespace

LogicalResult verifyFusedSteps(ProgramOp program) {
  const WalkResult found = program.walk([](Operation *op) {
    return failed(verifyFused(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(found.wasInterrupted());
}

} // namespace hydra::plan
