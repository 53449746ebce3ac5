// The generated kernels of a plan, one by one, for the code generator of a backend.
#pragma once

#include "compiler/codegen/CompiledKernels.h"
#include "compiler/codegen/rows/RowProgram.h"

namespace hydra {

using Strides = llvm::SmallVector<int64_t>;

/// A result of that shape, for each element of which so many partial sums are added.
struct PartialSums {
  int64_t parts;
  llvm::ArrayRef<int64_t> shape;
  Strides strides;
  RowType type;
};

/// Has code made of every kernel that is a group of row-wise operations (`group`, with the strides
/// of the tensors that it addresses by them: all but partial sums) or adds partial sums
/// (`combine`), and notes the symbols that these return. A located error if no generated code works
/// on some element type.
llvm::LogicalResult generateRowKernels(
    plan::PlanModuleOp module, CompiledKernels &compiled,
    llvm::function_ref<std::string(plan::KernelOp, const RowProgram &, llvm::ArrayRef<Strides>)>
        group,
    llvm::function_ref<std::string(plan::KernelOp, const PartialSums &)> combine);

} // namespace hydra
