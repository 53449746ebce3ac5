// What every tool does around passes.
#include "compiler/driver/Driver.h"

#include "compiler/driver/ModelText.h"
#include "compiler/driver/PassInstruments.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace hydra {

Driver::Driver(const ModelOptions &options, bool timed, Care care)
    : options(options), care(care), diagnostics(&context, care == Care::Trial) {
  if (care == Care::Full)
    applyDefaultTimingManagerCLOptions(timing);
  if (timed)
    timing.setEnabled(true);
  total = timing.getRootScope();
  DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<HydraDialect>();
}

LogicalResult Driver::load() {
  if (options.file.empty()) {
    printProblem("no model is given; expected MODEL.mlir [flags], see --help");
    return failure();
  }
  TimingScope scope = time("Parser");
  auto place = [&](unsigned line, unsigned column) {
    return FileLineColLoc::get(&context, options.file.getValue(), line, column);
  };
  std::string problem;
  std::unique_ptr<llvm::MemoryBuffer> text = readModelText(options.file, problem);
  if (!text)
    return emitError(place(0, 0)) << "cannot open the model: " << problem;
  if (std::optional<TextPlace> deep = findDeepNesting(text->getBuffer()))
    return emitError(place(deep->line, deep->column))
           << "brackets nest more than " << kMostNesting << " deep";
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(text), SMLoc());
  source = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!source || !findModel(module()))
    return failure();
  return verdict();
}

ModelOp Driver::model() { return *module().getOps<ModelOp>().begin(); }

LogicalResult Driver::addInstruments(PassManager &passes, TimingScope &scope) {
  if (care == Care::Trial) {
    passes.enableVerifier(false);
    return success();
  }
  passes.enableTiming(scope);
  if (failed(applyPassManagerCLOptions(passes)))
    return failure();
  passes.addInstrumentation(createLocationCheck());
  if (!options.dumpPasses.empty())
    passes.addInstrumentation(createPassDump(
        dumpFolder.empty() ? options.dumpPasses.getValue() : options.dumpPasses + "/" + dumpFolder,
        options.file));
  if (statisticsAsked())
    passes.addInstrumentation(createStatisticsReport());
  return success();
}

LogicalResult Driver::run(llvm::function_ref<void(OpPassManager &)> build) {
  PassManager passes(&context);
  TimingScope scope = time("Passes");
  if (failed(addInstruments(passes, scope)))
    return failure();
  build(passes);
  LogicalResult result = passes.run(module());
  if (failed(result) && diagnostics.errors() == 0)
    return module().emitError("a pass failed without saying why, which is a bug of that pass");
  return verdict();
}

} // namespace hydra
