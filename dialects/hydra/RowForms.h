// How tensors lie in the domain of a group of row-wise operations: the rules that the verifier, the
// passes and the code generators share.
#pragma once

#include "dialects/hydra/Interfaces.h"

namespace hydra {

/// The form of an input or result of a group, from its shape: a tile is rows ++ inner, a scalar [],
/// a column value inner, a row value rows or rows ++ [1, …] (one 1 for each inner dimension; where
/// rows and inner are the same shape, a value of that shape is a column value). nullopt: none.
std::optional<RowForm> formOfShape(const RowDomain &domain, llvm::ArrayRef<int64_t> shape);

/// The shape that an input or result of that form has: the first of the above that fits.
llvm::SmallVector<int64_t> shapeOfForm(const RowDomain &domain, RowForm form);

/// Whether two forms mean the same in a domain: they differ at most in a direction of extent 1.
bool sameForm(const RowDomain &domain, RowForm a, RowForm b);

/// Whether dimensions of `shape`, in row-major order, are a tensor of that form: as many elements,
/// and for a tile a first few dimensions that are all rows.
bool fitsForm(const RowDomain &domain, RowForm form, llvm::ArrayRef<int64_t> shape);

/// A broadcast of a tensor of shape `from` gives `to`, which has that form: the form of the operand.
/// nullopt if it repeats along some but not all of the row or inner dimensions.
std::optional<RowForm> formBeforeBroadcast(const RowDomain &domain, RowForm form,
                                           llvm::ArrayRef<int64_t> from,
                                           llvm::ArrayRef<int64_t> to);

/// The forms in which a row-wise operation can be part of a group, best first. An operation of form
/// Tile works on the domain itself, one of form Row on the rows alone (and so on).
llvm::SmallVector<RowForm, 4> fittingForms(const RowDomain &domain, RowWiseOpInterface op);

/// The form in the group of a value that has form `own` for an operation of form `op`.
RowForm formWithin(RowForm op, RowForm own);

llvm::StringRef formName(RowForm form);

} // namespace hydra
