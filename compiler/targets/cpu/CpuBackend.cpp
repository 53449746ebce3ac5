// One shared object with the kernels of a plan.
#include "compiler/targets/cpu/CpuBackend.h"

#include "compiler/codegen/RowKernels.h"
#include "compiler/codegen/cpu/CpuModule.h"
#include "compiler/targets/Target.h"
#include "runtime/calls/AttentionCall.h"

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
  cpu::CpuModule code(*target, how.objects, CodeFiles(how.cache, CodeFolder::kOfLLVM));
  LogicalResult generated = generateRowKernels(
      module, compiled,
      [&](plan::KernelOp kernel, const RowProgram &rows, ArrayRef<Strides> strides) {
        return code.add(rows, strides, kernel.getGrain());
      },
      [&](plan::KernelOp, const PartialSums &sums) {
        return code.addCombine(sums.parts, sums.shape, sums.strides, sums.type);
      });
  if (failed(generated))
    return failure();
  if (code.size() == 0)
    return compiled;
  llvm::Expected<std::vector<uint8_t>> bytes = code.link();
  if (!bytes)
    return module.emitError() << "cannot generate code: " << llvm::toString(bytes.takeError());
  compiled.blobs.push_back(blobOf(planfile::BlobKind::native, std::move(*bytes)));
  return compiled;
}

/// Bytes that the executor's function works in.
int64_t workspaceBytes(plan::AttentionGradOp op) {
  auto shapeOf = [](Value v) { return cast<MemRefType>(v.getType()).getShape(); };
  ArrayRef<int64_t> q = shapeOf(op.getQ()), k = shapeOf(op.getK()), v = shapeOf(op.getV());
  runtime::AttentionShape shape;
  shape.batch = q[0];
  shape.queries = q[1];
  shape.heads = q[2];
  shape.headDim = q[3];
  shape.keys = k[1];
  shape.kvHeads = k[2];
  shape.valueDim = v[3];
  return static_cast<int64_t>(runtime::attentionWorkspaceBytes(
      shape, cast<MemRefType>(op.getDq().getType()).getElementType().isF32()));
}

struct CpuBackend : TargetBackend {
  StringRef name() const override { return "cpu"; }
  planfile::TargetKind fileKind() const override { return planfile::TargetKind::cpu; }
  bool hasCollectives() const override { return true; }
  std::string transformRefusal(const runtime::FftSpec &spec) const override {
    return runtime::transformRefusal(fileKind(), spec);
  }

  /// Its steps are the executor's functions; attention_grad gets the bytes that it works in.
  LogicalResult expandKernels(plan::PlanModuleOp module, TargetAttr) const override {
    module.walk([](plan::AttentionGradOp op) {
      if (op.getWorkspace())
        return;
      OpBuilder b(op);
      auto type = MemRefType::get({workspaceBytes(op) / 4}, b.getF32Type());
      op.getWorkspaceMutable().assign(
          plan::BufferOp::create(b, op.getLoc(), type, plan::Segment::transient,
                                 plan::Category::workspace, IntegerAttr()));
    });
    return success();
  }

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
