// Loops and branches in LLVM IR, written as if they were loops and branches.
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace hydra::rows {

using Values = llvm::SmallVector<llvm::Value *, 8>;

/// for (i = from; i < to; i += step), unsigned. The body maps the carried values to their next
/// ones; returns the last ones. Insertion continues behind the loop.
inline Values
emitLoop(llvm::IRBuilderBase &b, llvm::Value *from, llvm::Value *to, int64_t step,
         llvm::ArrayRef<llvm::Value *> carried,
         llvm::function_ref<Values(llvm::Value *, llvm::ArrayRef<llvm::Value *>)> body) {
  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *before = b.GetInsertBlock();
  auto block = [&](const char *name) {
    return llvm::BasicBlock::Create(b.getContext(), name, function);
  };
  llvm::BasicBlock *head = block("loop"), *inside = block("body"), *after = block("after");
  b.CreateBr(head);

  b.SetInsertPoint(head);
  llvm::PHINode *i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(from, before);
  Values current;
  for (llvm::Value *value : carried) {
    llvm::PHINode *phi = b.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    current.push_back(phi);
  }
  b.CreateCondBr(b.CreateICmpULT(i, to), inside, after);

  b.SetInsertPoint(inside);
  Values next = body(i, current);
  i->addIncoming(b.CreateNUWAdd(i, b.getInt64(step)), b.GetInsertBlock());
  for (auto [value, phi] : llvm::zip(next, current))
    llvm::cast<llvm::PHINode>(phi)->addIncoming(value, b.GetInsertBlock());
  b.CreateBr(head);

  b.SetInsertPoint(after);
  return current;
}

/// `otherwise` may be empty.
inline void emitIf(llvm::IRBuilderBase &b, llvm::Value *condition, llvm::function_ref<void()> body,
                   llvm::function_ref<void()> otherwise = {}) {
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *inside = llvm::BasicBlock::Create(b.getContext(), "then", function);
  auto *outside = otherwise ? llvm::BasicBlock::Create(b.getContext(), "else", function) : nullptr;
  auto *after = llvm::BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(condition, inside, outside ? outside : after);
  b.SetInsertPoint(inside);
  body();
  b.CreateBr(after);
  if (outside) {
    b.SetInsertPoint(outside);
    otherwise();
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
}

} // namespace hydra::rows
