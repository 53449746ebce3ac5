// What the values of a model's text are, and which part of it computes the loss: tags of locations,
// for reports. Set once, where the text becomes static; what passes build goes on from there.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Tags all operations of an entry: with the category of the result, with the loss's phase where a
/// loss leads, and at the end of the path with the parameter or state that is read.
void tagValues(EntryOp entry);

/// What the result of an operation is by the operation alone; nullopt of one that only moves
/// values.
std::optional<Category> ownCategory(mlir::Operation *op);

/// What a variable holds.
Category categoryOf(StateOp state);

/// The class of the step that computes an operation.
OpClass classOf(mlir::Operation *op);

/// Tags what makes a value, through operations that only move it.
void tagMade(mlir::Value value, Category category);

} // namespace hydra
