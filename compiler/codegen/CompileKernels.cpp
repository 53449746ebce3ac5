// Native code for all kernels of a plan.
#include "compiler/codegen/CompileKernels.h"

#include "compiler/codegen/RecordGroup.h"
#include "compiler/codegen/cpu/CpuModule.h"
#include "dialects/hydra/RowPartition.h"

using namespace mlir;

namespace hydra {

namespace {

/// The strides of the tensors that a kernel's code addresses by them: all but partial sums.
std::vector<cpu::Strides> stridesOf(plan::KernelOp kernel, size_t count) {
  std::vector<cpu::Strides> strides;
  for (Type type : kernel.getLayouts().getAsValueRange<TypeAttr>())
    if (strides.size() < count)
      strides.push_back(plan::stridesOf(cast<MemRefType>(type)));
  return strides;
}

FailureOr<std::string> addGroup(cpu::CpuModule &code, plan::KernelOp kernel, FusedOp group) {
  FailureOr<RowProgram> rows = recordRows(group);
  if (failed(rows))
    return failure();
  size_t tensors = group.getInputs().size();
  for (unsigned i = 0; i < group->getNumResults(); ++i)
    tensors += !sumsOverRows(group, i);
  return code.add(*rows, stridesOf(kernel, tensors), kernel.getGrain());
}

FailureOr<std::string> addCombination(cpu::CpuModule &code, plan::KernelOp kernel) {
  auto result = cast<MemRefType>(cast<TypeAttr>(kernel.getLayouts()[1]).getValue());
  return code.addCombine(*kernel.getCombines(), result.getShape(), plan::stridesOf(result),
                         *rowTypeOf(result.getElementType()));
}

} // namespace

FailureOr<CompiledKernels> compileKernels(plan::PlanModuleOp module, StringRef targetName) {
  auto target = cpu::CpuTarget::get(targetName);
  if (!target)
    return module.emitError() << llvm::toString(target.takeError());
  CompiledKernels kernels;
  kernels.cpuFeatures = target->features();
  cpu::CpuModule code(*target);
  for (auto kernel : module.getBody().getOps<plan::KernelOp>()) {
    auto groups = kernel.getBody().getOps<FusedOp>();
    FailureOr<std::string> symbol = kernel.getCombines()
                                        ? addCombination(code, kernel)
                                        : addGroup(code, kernel, *groups.begin());
    if (failed(symbol))
      return failure();
    kernels.symbols[kernel.getSymName()] = *symbol;
  }
  if (code.size() == 0)
    return kernels;
  llvm::Expected<std::vector<uint8_t>> bytes = code.link();
  if (!bytes)
    return module.emitError() << "cannot generate code: " << llvm::toString(bytes.takeError());
  kernels.code = std::move(*bytes);
  return kernels;
}

} // namespace hydra
