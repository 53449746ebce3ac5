// Any text given as a model: it is refused or bound, but never crashes, hangs or leaks.
#include "compiler/Pipelines.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace mlir;

namespace {

/// One for the process: dialects take longer to load than small texts to parse.
MLIRContext &context() {
  static MLIRContext *shared = [] {
    DialectRegistry registry;
    hydra::registerDialects(registry);
    auto *fresh = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    fresh->loadAllAvailableDialects();
    return fresh;
  }();
  return *shared;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size); // the lexer wants a final zero
  ScopedDiagnosticHandler silence(&context(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
  if (!module)
    return 0;
  PassManager passes(&context());
  hydra::BindingOptions binding;
  binding.preset = "tiny";
  binding.batch = 2;
  binding.seq = 3;
  hydra::buildForwardPipeline(passes, binding);
  (void)passes.run(*module);
  return 0;
}
