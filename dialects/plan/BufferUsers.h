// Who touches the bytes of a buffer.
#pragma once

#include "dialects/plan/Plan.h"

#include "llvm/ADT/SetVector.h"

namespace hydra::plan {

/// Whatever uses bytes of a buffer or view by this name, or by one that is made of it, each once.
inline llvm::SetVector<mlir::Operation *> usersOf(mlir::Value name) {
  llvm::SetVector<mlir::Operation *> users;
  llvm::SmallVector<mlir::Value> names{name};
  while (!names.empty())
    for (mlir::Operation *user : names.pop_back_val().getUsers())
      if (auto view = llvm::dyn_cast<ViewOp>(user))
        names.push_back(view.getView());
      else
        users.insert(user);
  return users;
}

} // namespace hydra::plan
