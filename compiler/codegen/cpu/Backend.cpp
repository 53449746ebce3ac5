// Optimisation and machine code for generated kernels.
#include "compiler/codegen/cpu/Backend.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace llvm;

namespace hydra::cpu {

static constexpr StringLiteral kTriple = "x86_64-unknown-linux-gnu";

static Expected<std::unique_ptr<TargetMachine>> makeMachine(const CpuTarget &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string message;
  Triple triple(kTriple);
  const Target *x86 = TargetRegistry::lookupTarget(triple, message);
  if (!x86)
    return createStringError(message);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict; // multiply-adds only where they are written
  return std::unique_ptr<TargetMachine>(x86->createTargetMachine(
      triple, target.level, /*Features=*/"", options, Reloc::PIC_, std::nullopt,
      target.optimised ? CodeGenOptLevel::Default : CodeGenOptLevel::None));
}

Error prepareModule(Module &module, const CpuTarget &target) {
  auto machine = makeMachine(target);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple(Triple(kTriple));
  module.setDataLayout((*machine)->createDataLayout());
  module.setPICLevel(PICLevel::BigPIC);
  return Error::success();
}

void prepareFunction(Function &function, const CpuTarget &target) {
  function.addFnAttr(Attribute::NoUnwind);
  function.addFnAttr("target-cpu", target.level);
  function.addFnAttr("tune-cpu", target.tune);
  // Without these the level's tuning would split every vector of 512 bits.
  function.addFnAttr("prefer-vector-width", "512");
  function.addFnAttr("min-legal-vector-width", "512");
  // The shared object imports nothing, so no loop may become a call of memset.
  function.addFnAttr("no-builtins");
}

static void optimise(Module &module, TargetMachine &machine) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false; // the code is vectors already
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  tuning.LoopInterleaving = false;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  TargetLibraryInfoImpl library(module.getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(module, modules);
}

std::string objectsOf(const CpuTarget &target) {
  return "object 1, " + target.level + (target.optimised ? ", optimised" : "");
}

Expected<std::vector<uint8_t>> compileObject(Module &module, const CpuTarget &target) {
  std::string problem;
  raw_string_ostream os(problem);
  if (verifyModule(module, &os))
    return createStringError("generated code is not valid LLVM IR: " + problem);
  auto machine = makeMachine(target);
  if (!machine)
    return machine.takeError();
  if (target.optimised)
    optimise(module, **machine);
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  TargetLibraryInfoImpl library(module.getTargetTriple());
  library.disableAllFunctions();
  passes.add(new TargetLibraryInfoWrapperPass(library));
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return createStringError("the X86 back end cannot write object files");
  passes.run(module);
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

} // namespace hydra::cpu
