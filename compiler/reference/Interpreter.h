// The oracle: evaluates a program of the hydra dialect in float64, operation by operation.
#pragma once

#include "dialects/hydra/Hydra.h"

#include "llvm/ADT/StringMap.h"

namespace hydra {

/// Named tensors: parameters and state by name, inputs by argument name, outputs by output name.
using TensorMap = llvm::StringMap<RefTensor>;

struct InterpreterOptions {
  /// Rounds every result to its type, and operands to what they are multiplied in, as a
  /// low-precision run would.
  bool round = false;
  /// Not 0: stochastic arithmetic, with this seed. Every floating-point result is a little off, by
  /// a few units of rounding of its type (more for sums of many terms), as are the operands it is
  /// computed from, in even seeds equal numbers alike; what no
  /// arithmetic of that type would round (whole numbers, results that are moved or chosen) stays.
  /// How far results of several seeds lie apart says how well a program is conditioned.
  uint64_t perturb = 0;
};

/// Runs one bound program. Every argument and every parameter or state it uses must be in `values`
/// with its static shape. Returns the outputs by name, and the updated parameters and state under
/// theirs. Works at any stage of compilation that is still in the dialect.
llvm::FailureOr<TensorMap> interpret(EntryOp entry, const TensorMap &values,
                                     const InterpreterOptions &options = {});

/// Runs a program on all ranks of its model's mesh in lockstep; `values` are what each rank has. Returns
/// what `interpret` does, for each rank.
llvm::FailureOr<std::vector<TensorMap>> interpretRanks(EntryOp entry,
                                                       llvm::ArrayRef<TensorMap> values,
                                                       const InterpreterOptions &options = {});

/// The same of values of the whole batch: rank r gets rows [r B / N, (r + 1) B / N) of it, and all of
/// everything else but units, of which it gets its piece: members of units are given and returned, as
/// tensors of their own. Of results, rows and pieces are joined in the order of ranks, and parts of
/// sums (`StateOp::isPart`) added up; others must be the same on all ranks, bit for bit, or it
/// fails. A program of which every rank has all runs once.
llvm::FailureOr<TensorMap> interpretBatch(EntryOp entry, const TensorMap &values,
                                          const InterpreterOptions &options = {});

/// Bytes that a tensor of the oracle takes.
inline double oracleBytes(llvm::ArrayRef<int64_t> shape) {
  return 8.0 * static_cast<double>(RefTensor::elements(shape));
}

/// Bytes of memory in this machine; `interpret` reports the operation whose results do not fit
/// beside what is held then.
int64_t machineMemory();

/// Rounds every element to the type: floats to nearest even, others unchanged.
void roundTo(RefTensor &tensor, mlir::Type element);

/// The starting values of all parameters and state of a bound model (stacks unrolled), rounded to
/// their types: models.md initialisers, counter-based by seed and name. Those of units by members.
llvm::FailureOr<TensorMap> initialValues(ModelOp model, uint64_t seed);

/// Rounds the numbers that are given of parameters of i8, row by row as runs do, and adds their
/// scales; splits those of parameters in two halves. What has a scale or a rest already is left.
void toHeldForm(ModelOp model, TensorMap &values);
/// Joins the halves of parameters again, and drops the rests.
void toGivenForm(ModelOp model, TensorMap &values);

/// Adds the whole tensor of every unit whose members are all there.
void joinMembers(ModelOp model, TensorMap &values);
/// Replaces whole tensors of units by those of their members.
void takeMembers(ModelOp model, TensorMap &values);

} // namespace hydra
