// Collects kernels under symbols made from what they do, and compiles them to PTX.
#include "compiler/codegen/cuda/PtxModule.h"

#include "compiler/codegen/rows/KernelKey.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace llvm;

namespace hydra::cuda {

static constexpr StringLiteral kTriple = "nvptx64-nvidia-cuda";
/// What ptxas of CUDA 12.7 and drivers from 565 on take; sm_120 needs it.
static constexpr StringLiteral kPtxVersion = "+ptx87";

/// What a text follows from beside its module. To be changed with what makes texts of modules here.
static constexpr StringLiteral kTextsOf = "PTX 1";

std::string PtxModule::insert(Kernel kernel, int64_t instances) {
  kernel.instances = instances;
  if (instances > 1)
    kernel.key += ("\ninstances " + Twine(instances)).str();
  return rows::insertKernel(kernels, kernel);
}

std::string PtxModule::add(const RowProgram &program, ArrayRef<Strides> layouts,
                           ArrayRef<int64_t> alignments, int64_t grain, int64_t counted,
                           int64_t instances) {
  Kernel kernel;
  kernel.key = program.key() + "\ngrain " + std::to_string(grain);
  if (counted > 0)
    kernel.key += "\ncounted " + std::to_string(counted);
  for (const Strides &strides : layouts)
    rows::addNumbers(kernel.key, strides);
  rows::addNumbers(kernel.key, alignments);
  kernel.program = program;
  kernel.layouts.assign(layouts.begin(), layouts.end());
  kernel.alignments = alignments;
  kernel.grain = grain;
  kernel.counted = counted;
  return insert(std::move(kernel), instances);
}

std::string PtxModule::addCombine(int64_t parts, ArrayRef<int64_t> shape, const Strides &strides,
                                  RowType type, int64_t instances) {
  Kernel kernel;
  kernel.key = rows::combineKey(parts, shape, strides, type);
  kernel.parts = parts;
  kernel.resultShape.assign(shape);
  kernel.layouts = {strides};
  kernel.type = type;
  return insert(std::move(kernel), instances);
}

/// Lets the next kernel be launched, and waits for those in front of this one, before anything
/// else.
static void waitForEarlier(Function *function) {
  BasicBlock &entry = function->getEntryBlock();
  IRBuilder<> b(&entry, entry.begin());
  auto *type = FunctionType::get(b.getVoidTy(), /*isVarArg=*/false);
  for (StringRef text : {"griddepcontrol.launch_dependents;", "griddepcontrol.wait;"})
    b.CreateCall(InlineAsm::get(type, text, "~{memory}", /*hasSideEffects=*/true));
}

static Expected<std::unique_ptr<TargetMachine>> makeMachine(StringRef architecture) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string message;
  Triple triple(kTriple);
  const Target *nvptx = TargetRegistry::lookupTarget(triple, message);
  if (!nvptx)
    return createStringError(message);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict; // multiply-adds only where they are written
  return std::unique_ptr<TargetMachine>(
      nvptx->createTargetMachine(triple, architecture, kPtxVersion, options, Reloc::PIC_,
                                 std::nullopt, CodeGenOptLevel::Aggressive));
}

static void optimise(Module &module, TargetMachine &machine) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(module, modules);
}

Expected<std::string> PtxModule::compile(const std::string &symbol, Kernel &kernel) const {
  LLVMContext context;
  Module module(symbol, context);
  module.setSourceFileName("");
  auto machine = makeMachine(architecture);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple(Triple(kTriple));
  module.setDataLayout((*machine)->createDataLayout());
  unsigned arguments =
      kernel.parts > 0 ? 2 : argumentCount(kernel.program) + (kernel.counted > 0 ? 1 : 0);
  Type *pointer = PointerType::getUnqual(context);
  SmallVector<Type *> types(kernel.instances > 1 ? 1 : arguments, pointer);
  auto *type = FunctionType::get(Type::getVoidTy(context), types, /*isVarArg=*/false);
  Function *function = Function::Create(type, Function::ExternalLinkage, symbol, module);
  function->setCallingConv(CallingConv::PTX_Kernel);
  function->addFnAttr(Attribute::NoUnwind);
  if (kernel.instances > 1) {
    Type *table = ArrayType::get(ArrayType::get(pointer, arguments), kernel.instances);
    function->addParamAttr(0, Attribute::getWithByValType(context, table));
    function->addParamAttr(0, Attribute::get(context, "nvvm.grid_constant"));
    function->addParamAttr(0, Attribute::getWithAlignment(context, Align(8)));
  }
  function->addFnAttr("target-cpu", architecture);
  function->addFnAttr("target-features", kPtxVersion);
  kernel.shape = kernel.parts > 0
                     ? emitCombine(function, kernel.parts, kernel.resultShape,
                                   kernel.layouts.front(), kernel.type)
                     : emitRowKernel(function, kernel.program, kernel.layouts, kernel.alignments,
                                     kernel.grain, kernel.counted, threads);
  if (early)
    waitForEarlier(function);
  function->addFnAttr("nvvm.maxntid", std::to_string(kernel.shape.threads));
  if (kernel.shape.minBlocks > 0)
    function->addFnAttr("nvvm.minctasm", std::to_string(kernel.shape.minBlocks));
  std::string key;
  if (files.areKept()) {
    key = CodeFiles::keyOf(kTextsOf, module);
    if (std::optional<CodeFiles::Entry> known = files.read(key))
      return std::string(known->code.begin(), known->code.end());
  }
  std::string problem;
  raw_string_ostream os(problem);
  if (verifyModule(module, &os))
    return createStringError("generated code is not valid LLVM IR: " + problem);
  optimise(module, **machine);
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::AssemblyFile))
    return createStringError("the NVPTX back end cannot write PTX");
  passes.run(module);
  files.write(key, arrayRefFromStringRef(StringRef(bytes.data(), bytes.size())));
  return std::string(bytes.begin(), bytes.end());
}

Expected<std::string> PtxModule::compile() {
  std::vector<std::string> texts(kernels.size());
  std::mutex lock;
  Error error = Error::success();
  DefaultThreadPool pool;
  size_t next = 0;
  for (auto &[symbol, kernel] : kernels)
    pool.async([&, &symbol = symbol, &kernel = kernel, &text = texts[next++]] {
      Expected<std::string> compiled = compile(symbol, kernel);
      std::lock_guard guard(lock);
      if (compiled)
        text = std::move(*compiled);
      else
        error = joinErrors(std::move(error), compiled.takeError());
    });
  pool.wait();
  if (error)
    return error;
  // One module: every text but the first loses its head (version, target, address size).
  std::string all;
  for (const std::string &text : texts) {
    StringRef body = text;
    if (!all.empty())
      body = body.split(".address_size 64").second;
    all += body;
  }
  return all;
}

} // namespace hydra::cuda
