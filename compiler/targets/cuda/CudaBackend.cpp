// Machine code for the kernels of a plan, with PTX beside it.
#include "compiler/targets/cuda/CudaBackend.h"

#include "compiler/codegen/RowKernels.h"
#include "compiler/codegen/cuda/AssemblerLog.h"
#include "compiler/codegen/cuda/ExpandSteps.h"
#include "compiler/codegen/cuda/KernelCache.h"
#include "compiler/codegen/cuda/PtxModule.h"
#include "compiler/targets/Target.h"
#include "dialects/hydra/Target.h"

using namespace mlir;

namespace hydra {

namespace {

/// Bytes by which every launch of a kernel aligns each of its arguments.
llvm::DenseMap<Attribute, SmallVector<int64_t>> alignmentsOfArguments(plan::PlanModuleOp module) {
  llvm::DenseMap<Attribute, SmallVector<int64_t>> found;
  SymbolTable symbols(module);
  module.walk([&](plan::LaunchOp launch) {
    auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernelAttr().getAttr());
    SmallVector<int64_t> &known = found[launch.getKernelAttr().getAttr()];
    known.resize(kernel.getLayouts().size(), 256);
    for (auto [i, arg] : llvm::enumerate(launch.getArgs())) {
      int64_t &least = known[i % known.size()]; // of every instance
      least = std::min(least, plan::alignmentOf(arg));
    }
  });
  return found;
}

/// Threads of generated kernels, where the target says any.
cuda::RowThreads rowThreadsOf(const Target &target) {
  constexpr int64_t kMultiprocessorThreads = 2048; // at most, of any architecture
  cuda::RowThreads threads;
  threads.atOnce = target.multiprocessors * kMultiprocessorThreads;
  constexpr int64_t kOther = 2048; // of a block: what the system takes, and partial results
  threads.heldBytes =
      std::min(target.multiprocessorSharedBytes / 2, target.blockSharedBytes) - kOther;
  const auto take = [](const KernelTiles &from, const char *name, int64_t &to) {
    if (const auto found = from.sizes.find(name); found != from.sizes.end())
      to = found->second;
  };
  for (const KernelTiles &tiles : target.tiles)
    if (tiles.kernel == kRowKernels) {
      take(tiles, "threads", threads.ofShortRows);
      take(tiles, "long_threads", threads.ofHeldRow);
      take(tiles, "long_threads", threads.ofLongRow);
    }
  return threads;
}

FailureOr<CompiledKernels> compileForCuda(plan::PlanModuleOp module, const Target &target,
                                          const CodeOptions &how) {
  const cuda::KernelCache cache(how.cache);
  CompiledKernels compiled;
  const bool early = llvm::is_contained(target.features, kEarlyLaunch.str());
  cuda::PtxModule code(target.code, early, rowThreadsOf(target),
                       CodeFiles(how.cache, CodeFolder::kOfLLVM));
  auto alignments = alignmentsOfArguments(module);
  auto instances = [](plan::KernelOp kernel) { return kernel.getInstances().value_or(1); };
  LogicalResult generated = generateRowKernels(
      module, compiled,
      [&](plan::KernelOp kernel, const RowProgram &rows, ArrayRef<Strides> strides) {
        SmallVector<int64_t> known = alignments.lookup(kernel.getSymNameAttr());
        known.resize(strides.size(), 4);
        return code.add(rows, strides, known, kernel.getGrain(), kernel.getCounted().value_or(0),
                        instances(kernel));
      },
      [&](plan::KernelOp kernel, const PartialSums &sums) {
        return code.addCombine(sums.parts, sums.shape, sums.strides, sums.type, instances(kernel));
      });
  if (failed(generated))
    return failure();
  auto fail = [&](llvm::Error error) {
    return module.emitError() << "cannot generate code: " << llvm::toString(std::move(error));
  };
  // Machine code where there is an assembler; PTX in any case.
  auto addCode = [&](std::vector<uint8_t> cubin, std::vector<uint8_t> ptx) {
    std::pair<uint32_t, int32_t> place(compiled.blobs.size(), -1);
    if (!cubin.empty()) {
      compiled.blobs.push_back(blobOf(planfile::BlobKind::cubin, std::move(cubin)));
      place.second = compiled.blobs.size();
    }
    compiled.blobs.push_back(blobOf(planfile::BlobKind::ptx, std::move(ptx)));
    return place;
  };
  // Of the kernels whose code is in a blob.
  auto addResources = [&](llvm::Expected<std::string> said, uint32_t blob) -> llvm::Error {
    if (!said)
      return said.takeError();
    cuda::AssemblerLog log = cuda::readAssemblerLog(*said);
    llvm::append_range(compiled.warnings, log.warnings);
    for (auto &[name, kernel] : compiled.kernels) {
      if (kernel.blob != blob)
        continue;
      const auto found = log.kernels.find(kernel.symbol);
      if (found == log.kernels.end())
        return llvm::createStringError("ptxas says nothing of kernel " + name);
      kernel.resources = found->second;
    }
    return llvm::Error::success();
  };
  if (code.size() > 0) {
    llvm::Expected<std::string> ptx = code.compile();
    if (!ptx)
      return fail(ptx.takeError());
    std::vector<uint8_t> machine;
    if (!how.onlyTexts) {
      auto cubin = cache.assemble(*ptx, target.code);
      if (!cubin)
        return fail(cubin.takeError());
      machine = std::move(*cubin).value_or(std::vector<uint8_t>());
    }
    auto [binary, text] =
        addCode(std::move(machine), std::vector<uint8_t>(ptx->begin(), ptx->end()));
    for (auto &entry : compiled.kernels) {
      KernelCode &kernel = entry.second;
      cuda::LaunchShape shape = code.shapeOf(kernel.symbol);
      kernel.blob = binary;
      kernel.ptx = text;
      kernel.grid = planfile::Dim3(shape.blocks, 1, 1);
      kernel.block = planfile::Dim3(shape.threads, 1, 1);
      kernel.sharedBytes = shape.sharedBytes;
      kernel.early = early;
    }
    if (how.resources)
      if (auto error = addResources(cache.assemblerLog(*ptx, target.code), binary))
        return fail(std::move(error));
  }
  std::string source = cuda::templateSource(module);
  if (source.empty())
    return compiled;
  cuda::CompiledSource templates;
  if (how.onlyTexts) {
    templates.ptx.assign(source.begin(), source.end());
  } else {
    llvm::Expected<cuda::CompiledSource> made = cache.compileSource(source, target.code);
    if (!made)
      return fail(made.takeError());
    templates = std::move(*made);
  }
  auto [binary, text] = addCode(std::move(templates.cubin), std::move(templates.ptx));
  for (auto kernel : module.getBody().getOps<plan::KernelOp>()) {
    if (!kernel.getLaunch())
      continue;
    ArrayRef<int64_t> shape = *kernel.getLaunch();
    KernelCode &entry = compiled.kernels[kernel.getSymName()];
    entry.symbol = kernel.getSymName().str();
    entry.blob = binary;
    entry.ptx = text;
    entry.grid = planfile::Dim3(shape[0], shape[1], shape[2]);
    entry.block = planfile::Dim3(shape[3], 1, 1);
    entry.sharedBytes = shape[4];
    entry.early = early;
  }
  if (how.resources)
    if (auto error = addResources(cache.sourceLog(source, target.code), binary))
      return fail(std::move(error));
  return compiled;
}

struct CudaBackend : TargetBackend {
  StringRef name() const override { return "cuda"; }
  planfile::TargetKind fileKind() const override { return planfile::TargetKind::cuda; }
  bool hasCollectives() const override { return true; }
  bool tellsResources() const override { return true; }
  Wants wants() const override {
    return {.addedProducts = true,
            .fusedLoops = true,
            .computedOperands = true,
            .usedSums = true,
            .rotatedGradients = true,
            .batchedLaunches = true,
            .fewRows = cuda::kFewRows,
            .streams = true,
            .tiles = true,
            .narrowInt8Rows = true};
  }
  std::string transformRefusal(const runtime::FftSpec &spec) const override {
    return runtime::transformRefusal(fileKind(), spec);
  }

  LogicalResult expandKernels(plan::PlanModuleOp module, TargetAttr target) const override {
    return cuda::expandSteps(module, target);
  }
  bool canComputeOperand(plan::LaunchOp launch, plan::MatmulOp matmul,
                         TargetAttr target) const override {
    return cuda::canComputeOperand(launch, matmul, target);
  }
  bool canComputeOperands(ArrayRef<plan::LaunchOp> launches, plan::CachedAttentionOp attention,
                          TargetAttr target) const override {
    return cuda::canComputeOperands(launches, attention, target);
  }
  bool canUseSums(plan::MatmulOp matmul, ArrayRef<plan::LaunchOp> launches,
                  TargetAttr target) const override {
    return cuda::canUseSums(matmul, launches, target);
  }
  bool canRotateGradients(plan::AttentionGradOp op, ArrayRef<plan::LaunchOp> launches,
                          TargetAttr target) const override {
    return cuda::canRotateGradients(op, launches, target);
  }

  FailureOr<CompiledKernels> compileKernels(plan::PlanModuleOp module, const Target &target,
                                            const CodeOptions &options) const override {
    return compileForCuda(module, target, options);
  }
};

} // namespace

const TargetBackend &cudaBackend() {
  static const CudaBackend backend;
  return backend;
}

} // namespace hydra
