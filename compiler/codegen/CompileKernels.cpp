// Code for all kernels of a plan.
#include "compiler/codegen/CompileKernels.h"

#include "compiler/codegen/RecordGroup.h"
#include "compiler/codegen/cpu/CpuModule.h"
#include "compiler/codegen/cuda/KernelCache.h"
#include "compiler/codegen/cuda/LibraryKernels.h"
#include "compiler/codegen/cuda/PtxModule.h"
#include "dialects/hydra/RowPartition.h"

using namespace mlir;

namespace hydra {

namespace {

/// The tensors that a kernel's code addresses by their strides: all but partial sums.
size_t stridedTensors(FusedOp group) {
  size_t tensors = group.getInputs().size();
  for (unsigned i = 0; i < group->getNumResults(); ++i)
    tensors += !sumsOverRows(group, i);
  return tensors;
}

std::vector<cpu::Strides> stridesOf(plan::KernelOp kernel, size_t count) {
  std::vector<cpu::Strides> strides;
  for (Type type : kernel.getLayouts().getAsValueRange<TypeAttr>())
    if (strides.size() < count)
      strides.push_back(plan::stridesOf(cast<MemRefType>(type)));
  return strides;
}

MemRefType combinedType(plan::KernelOp kernel) {
  return cast<MemRefType>(cast<TypeAttr>(kernel.getLayouts()[1]).getValue());
}

planfile::BlobT blob(planfile::BlobKind kind, std::vector<uint8_t> data) {
  planfile::BlobT blob;
  blob.kind = kind;
  blob.data = std::move(data);
  return blob;
}

FailureOr<CompiledKernels> compileForCpu(plan::PlanModuleOp module, const Target &named,
                                         const CpuCode &how) {
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
  compiled.blobs.push_back(blob(planfile::BlobKind::native, std::move(*bytes)));
  return compiled;
}

/// Bytes by which every launch of a kernel aligns each of its arguments.
llvm::DenseMap<Attribute, SmallVector<int64_t>> alignmentsOfArguments(plan::PlanModuleOp module) {
  llvm::DenseMap<Attribute, SmallVector<int64_t>> found;
  module.walk([&](plan::LaunchOp launch) {
    auto kernel = module.lookupSymbol<plan::KernelOp>(launch.getKernelAttr());
    SmallVector<int64_t> &known = found[launch.getKernelAttr().getAttr()];
    known.resize(kernel.getLayouts().size(), 256);
    for (auto [i, arg] : llvm::enumerate(launch.getArgs())) {
      int64_t &least = known[i % known.size()]; // of every instance
      least = std::min(least, plan::alignmentOf(arg));
    }
  });
  return found;
}

FailureOr<CompiledKernels> compileForCuda(plan::PlanModuleOp module, const Target &target,
                                          const cuda::KernelCache &cache) {
  CompiledKernels compiled;
  cuda::PtxModule code(target.code);
  auto alignments = alignmentsOfArguments(module);
  for (auto kernel : module.getBody().getOps<plan::KernelOp>()) {
    if (kernel->hasAttr(cuda::kSourceAttr))
      continue;
    KernelCode &entry = compiled.kernels[kernel.getSymName()];
    int64_t instances = kernel.getInstances().value_or(1);
    if (kernel.getCombines()) {
      MemRefType result = combinedType(kernel);
      entry.symbol =
          code.addCombine(*kernel.getCombines(), result.getShape(), plan::stridesOf(result),
                          *rowTypeOf(result.getElementType()), instances);
      continue;
    }
    FusedOp group = *kernel.getBody().getOps<FusedOp>().begin();
    FailureOr<RowProgram> rows = recordRows(group);
    if (failed(rows))
      return failure();
    size_t tensors = stridedTensors(group);
    SmallVector<int64_t> known = alignments.lookup(kernel.getSymNameAttr());
    known.resize(tensors, 4);
    entry.symbol = code.add(*rows, stridesOf(kernel, tensors), known, kernel.getGrain(), instances);
  }
  auto fail = [&](llvm::Error error) {
    return module.emitError() << "cannot generate code: " << llvm::toString(std::move(error));
  };
  // Machine code where there is an assembler; PTX in any case.
  auto addCode = [&](std::vector<uint8_t> cubin, std::vector<uint8_t> ptx) {
    std::pair<uint32_t, int32_t> place(compiled.blobs.size(), -1);
    if (!cubin.empty()) {
      compiled.blobs.push_back(blob(planfile::BlobKind::cubin, std::move(cubin)));
      place.second = compiled.blobs.size();
    }
    compiled.blobs.push_back(blob(planfile::BlobKind::ptx, std::move(ptx)));
    return place;
  };
  if (code.size() > 0) {
    llvm::Expected<std::string> ptx = code.compile();
    if (!ptx)
      return fail(ptx.takeError());
    auto cubin = cache.assemble(*ptx, target.code);
    if (!cubin)
      return fail(cubin.takeError());
    auto [binary, text] = addCode(cubin->value_or(std::vector<uint8_t>()),
                                  std::vector<uint8_t>(ptx->begin(), ptx->end()));
    for (auto &entry : compiled.kernels) {
      KernelCode &kernel = entry.second;
      cuda::LaunchShape shape = code.shapeOf(kernel.symbol);
      kernel.blob = binary;
      kernel.ptx = text;
      kernel.grid = planfile::Dim3(shape.blocks, 1, 1);
      kernel.block = planfile::Dim3(shape.threads, 1, 1);
    }
  }
  std::string source = cuda::templateSource(module);
  if (source.empty())
    return compiled;
  llvm::Expected<cuda::CompiledSource> templates = cache.compileSource(source, target.code);
  if (!templates)
    return fail(templates.takeError());
  auto [binary, text] = addCode(std::move(templates->cubin), std::move(templates->ptx));
  for (auto kernel : module.getBody().getOps<plan::KernelOp>()) {
    auto launch = kernel->getAttrOfType<DenseI64ArrayAttr>(cuda::kLaunchAttr);
    if (!launch)
      continue;
    ArrayRef<int64_t> shape = launch.asArrayRef();
    KernelCode &entry = compiled.kernels[kernel.getSymName()];
    entry.symbol = kernel.getSymName().str();
    entry.blob = binary;
    entry.ptx = text;
    entry.grid = planfile::Dim3(shape[0], shape[1], shape[2]);
    entry.block = planfile::Dim3(shape[3], 1, 1);
    entry.sharedBytes = shape[4];
  }
  return compiled;
}

} // namespace

FailureOr<CompiledKernels> compileKernels(plan::PlanModuleOp module, const Target &target,
                                          const std::filesystem::path &cache, const CpuCode &code) {
  return target.kind == planfile::TargetKind::cuda
             ? compileForCuda(module, target, cuda::KernelCache(cache))
             : compileForCpu(module, target, code);
}

} // namespace hydra
