// The list of backends.
#include "compiler/Backends.h"

#include "compiler/targets/cpu/CpuBackend.h"
#include "compiler/targets/cuda/CudaBackend.h"
#include "compiler/targets/null/NullBackend.h"

#include "dialects/plan/KernelExpansion.h"

#include "runtime/support/Error.h"

#include <fmt/format.h>

using namespace mlir;

namespace hydra {

static ArrayRef<const TargetBackend *> backends() {
  static const TargetBackend *const all[] = {&cpuBackend(), &cudaBackend(), &nullBackend()};
  return all;
}

const TargetBackend &backendOf(const Target &target) {
  std::vector<std::string> names;
  for (const TargetBackend *backend : backends()) {
    if (backend->name() == target.kind)
      return *backend;
    names.push_back(backend->name().str());
  }
  support::fail("{}: field 'kind' is \"{}\"; expected one of {}", target.origin, target.kind,
                fmt::join(names, ", "));
}

namespace {

/// What a step transforms.
runtime::FftSpec describe(plan::FftOp op) {
  const Value rows = op.getInverse() ? op.getTo() : op.getFrom();
  auto type = cast<MemRefType>(rows.getType());
  runtime::FftSpec spec;
  spec.length = type.getShape().back();
  spec.rows = type.getNumElements() / spec.length;
  spec.inverse = op.getInverse();
  return spec;
}

LogicalResult checkTransforms(plan::PlanModuleOp module, const TargetBackend &backend) {
  const WalkResult result = module.walk([&](plan::FftOp op) {
    const std::string refusal = backend.transformRefusal(describe(op));
    if (refusal.empty())
      return WalkResult::advance();
    op.emitError() << refusal;
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

struct Expansion : plan::KernelExpansionInterface {
  using KernelExpansionInterface::KernelExpansionInterface;

  LogicalResult expand(plan::PlanModuleOp module, TargetAttr target) const override {
    for (const TargetBackend *backend : backends())
      if (backend->name() == target.getBackend())
        return failure(failed(checkTransforms(module, *backend)) ||
                       failed(backend->expandKernels(module, target)));
    return module.emitError() << "is for the backend '" << target.getBackend()
                              << "', which does not exist";
  }

  bool canComputeOperand(plan::LaunchOp launch, plan::MatmulOp matmul,
                         TargetAttr target) const override {
    return llvm::any_of(backends(), [&](const TargetBackend *backend) {
      return backend->name() == target.getBackend() &&
             backend->canComputeOperand(launch, matmul, target);
    });
  }

  bool canComputeOperands(ArrayRef<plan::LaunchOp> launches, plan::CachedAttentionOp attention,
                          TargetAttr target) const override {
    return llvm::any_of(backends(), [&](const TargetBackend *backend) {
      return backend->name() == target.getBackend() &&
             backend->canComputeOperands(launches, attention, target);
    });
  }

  bool canUseSums(plan::MatmulOp matmul, ArrayRef<plan::LaunchOp> launches,
                  TargetAttr target) const override {
    return llvm::any_of(backends(), [&](const TargetBackend *backend) {
      return backend->name() == target.getBackend() &&
             backend->canUseSums(matmul, launches, target);
    });
  }

  bool canRotateGradients(plan::AttentionGradOp op, ArrayRef<plan::LaunchOp> launches,
                          TargetAttr target) const override {
    return llvm::any_of(backends(), [&](const TargetBackend *backend) {
      return backend->name() == target.getBackend() &&
             backend->canRotateGradients(op, launches, target);
    });
  }
};

} // namespace

void registerBackends(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *, plan::PlanDialect *dialect) { dialect->addInterfaces<Expansion>(); });
}

} // namespace hydra
