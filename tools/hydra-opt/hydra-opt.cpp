// hydra-opt: runs any pass or pipeline over any .mlir file, as mlir-opt does. With flags that bind a
// model, hydra-bind comes first.
#include "compiler/driver/ModelOptions.h"
#include "compiler/driver/ModelText.h"
#include "compiler/driver/PassInstruments.h"
#include "runtime/support/StandardStreams.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <optional>
#include <string>

using namespace mlir;

namespace {

std::atomic<unsigned> errorCount = 0;

/// Counts errors of every context, and leaves them to whoever prints them.
void countErrors(MLIRContext *context, hydra::HydraDialect *) {
  context->getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    errorCount += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure();
  });
}

LogicalResult run(const std::string &input, const std::string &output, DialectRegistry &registry,
                  std::optional<hydra::BindingOptions> binding) {
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  const MlirOptMainConfig given = config;
  config.setPassPipelineSetupFn([&](PassManager &passes) {
    if (hydra::statisticsAsked())
      passes.addInstrumentation(hydra::createStatisticsReport());
    if (binding)
      passes.addPass(hydra::createBind(hydra::bindOptions(*binding)));
    return given.setupPassPipeline(passes);
  });
  std::string text, problem;
  if (config.shouldShowDialects() || config.shouldListPasses())
    return MlirOptMain(llvm::outs(), llvm::MemoryBuffer::getMemBuffer(""), registry, config);
  std::unique_ptr<llvm::MemoryBuffer> model = openInputFile(input, &problem);
  if (!model) {
    llvm::errs() << problem << '\n';
    return failure();
  }
  if (std::optional<hydra::TextPlace> deep = hydra::findDeepNesting(model->getBuffer())) {
    llvm::errs() << input << ':' << deep->line << ':' << deep->column
                 << ": error: brackets nest more than " << hydra::kMostNesting << " deep\n";
    return failure();
  }
  // Nothing is written beside an error, even one that a pass has ignored.
  llvm::raw_string_ostream out(text);
  if (failed(MlirOptMain(out, std::move(model), registry, config)) ||
      (errorCount > 0 && !config.shouldVerifyDiagnostics()))
    return failure();
  auto file = openOutputFile(output, &problem);
  if (!file) {
    llvm::errs() << problem << '\n';
    return failure();
  }
  file->os() << text;
  file->os().flush();
  if (std::error_code error = file->os().error()) {
    file->os().clear_error();
    llvm::errs() << "cannot write " << output << ": " << error.message() << '\n';
    return failure();
  }
  file->keep();
  return success();
}

} // namespace

int main(int argc, char **argv) {
  hydra::support::reserveStandardStreams();
  hydra::support::ignoreFileSizeSignal();
  DialectRegistry registry;
  hydra::registerEverything(registry);
  registry.addExtension(countErrors);
  static hydra::BindingOptions binding;
  static hydra::BindingFlags flags(binding);
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "Hydra's passes over .mlir files", registry);
  return asMainReturnCode(
      run(input, output, registry, flags.given() ? std::optional(binding) : std::nullopt));
}
