// One shared object with the kernels of a plan.
#include "compiler/targets/cpu/CpuBackend.h"

#include "compiler/codegen/RecordGroup.h"
#include "compiler/codegen/cpu/CpuModule.h"
#include "compiler/targets/Target.h"

using namespace mlir;

namespace hydra {

namespace {

FailureOr<CompiledKernels> compileForCpu(plan::PlanModuleOp module, const Target &named,
                                         const CodeOptions &how) {
  auto target = cpu::CpuTarget::get(named.code);
  if (!target)
    return module.emitError() << llvm::toString(target.takeError());
  target->optimised = how.optimised;
  CompiledKernels compiled;
  compiled.cpuFeatures = target->features();
  cpu::CpuModule code(*target, how.objects);
  for (auto kernel : module.getBody().getOps<plan::KernelOp>()) {
    KernelCode &entry = compiled.kernels[kernel.getSymName()];
    if (kernel.getCombines()) {
      MemRefType result = combinedType(kernel);
      entry.symbol = code.addCombine(*kernel.getCombines(), result.getShape(),
                                     plan::stridesOf(result), *rowTypeOf(result.getElementType()));
      continue;
    }
    FusedOp group = *kernel.getBody().getOps<FusedOp>().begin();
    FailureOr<RowProgram> rows = recordRows(group);
    if (failed(rows))
      return failure();
    entry.symbol = code.add(*rows, stridesOf(kernel, stridedTensors(group)), kernel.getGrain());
  }
  if (code.size() == 0)
    return compiled;
  llvm::Expected<std::vector<uint8_t>> bytes = code.link();
  if (!bytes)
    return module.emitError() << "cannot generate code: " << llvm::toString(bytes.takeError());
  compiled.blobs.push_back(blobOf(planfile::BlobKind::native, std::move(*bytes)));
  return compiled;
}

struct CpuBackend : TargetBackend {
  StringRef name() const override { return "cpu"; }
  planfile::TargetKind fileKind() const override { return planfile::TargetKind::cpu; }

  FailureOr<CompiledKernels> compileKernels(plan::PlanModuleOp module, const Target &target,
                                            const CodeOptions &options) const override {
    return compileForCpu(module, target, options);
  }
};

} // namespace

const TargetBackend &cpuBackend() {
  static const CpuBackend backend;
  return backend;
}

} // namespace hydra
