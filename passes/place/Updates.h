// New values of variables, and what must have read the old ones before.
#pragma once

#include "dialects/hydra/Hydra.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace hydra {

/// The operations of a program that make new values of variables, in program order, each with the
/// operations that read the old values: an update that comes behind all of them can be written in
/// place. Reads through views and joined parameters count; the update's own do not. What only gives
/// a new value another shape makes none.
llvm::MapVector<mlir::Operation *, llvm::SetVector<mlir::Operation *>> findUpdates(EntryOp entry);

/// The values that become variables when the program ends, also before they are reshaped; they need
/// no bytes of their own when they are written in place.
llvm::DenseSet<mlir::Value> updatedValues(EntryOp entry);

} // namespace hydra
