// The labels that count in a step over micro-batches, by which its losses divide: part of
// hydra-optimizer.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Creates a state of one f32 that is zero when a step begins. Fails, with the place, where
/// something else has the name.
using CreateStepSum =
    llvm::function_ref<llvm::FailureOr<StateOp>(const llvm::Twine &name, mlir::Location loc)>;

/// Lets the losses of a program over one of `accum` micro-batches divide by the labels that count
/// in the whole step, divided by `accum`: their mean over micro-batches is that over the step. A
/// program `counter`, which runs for each micro-batch before the first of them, sums these labels
/// up. Returns the sums, which a step has to clear at its end; none where no loss counts labels.
/// Fails, with the place, for a loss in a loop.
llvm::FailureOr<llvm::SmallVector<StateOp>> divideByLabelsOfStep(EntryOp entry,
                                                                 llvm::StringRef counter,
                                                                 int64_t accum,
                                                                 CreateStepSum createSum);

} // namespace hydra
