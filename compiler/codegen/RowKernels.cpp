// The generated kernels of a plan, one by one, for the code generator of a backend.
#include "compiler/codegen/RowKernels.h"

#include "compiler/codegen/rows/RecordGroup.h"
#include "dialects/hydra/RowPartition.h"

using namespace mlir;

namespace hydra {

/// The strides of the tensors of a kernel, which come in front of its partial sums.
static SmallVector<Strides> stridesOf(plan::KernelOp kernel, FusedOp group) {
  size_t tensors = group.getInputs().size();
  for (unsigned i = 0; i < group->getNumResults(); ++i)
    tensors += !sumsOverRows(group, i);
  SmallVector<Strides> strides;
  for (Attribute layout : kernel.getLayouts().getValue().take_front(tensors))
    strides.push_back(plan::stridesOf(cast<MemRefType>(cast<TypeAttr>(layout).getValue())));
  return strides;
}

LogicalResult generateRowKernels(
    plan::PlanModuleOp module, CompiledKernels &compiled,
    llvm::function_ref<std::string(plan::KernelOp, const RowProgram &, ArrayRef<Strides>)> group,
    llvm::function_ref<std::string(plan::KernelOp, const PartialSums &)> combine) {
  for (auto kernel : module.getBody().getOps<plan::KernelOp>()) {
    if (kernel.getSource()) // of a backend's own
      continue;
    std::string &symbol = compiled.kernels[kernel.getSymName()].symbol;
    if (std::optional<int64_t> parts = kernel.getCombines()) {
      auto result = cast<MemRefType>(cast<TypeAttr>(kernel.getLayouts()[1]).getValue());
      symbol = combine(kernel, {*parts, result.getShape(), plan::stridesOf(result),
                                *rowTypeOf(result.getElementType())});
      continue;
    }
    FusedOp fused = *kernel.getBody().getOps<FusedOp>().begin();
    FailureOr<RowProgram> rows = recordRows(fused);
    if (failed(rows))
      return failure();
    symbol = group(kernel, *rows, stridesOf(kernel, fused));
  }
  return success();
}

} // namespace hydra
