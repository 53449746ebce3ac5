// The first passes of every compilation, and no others.
#include "tools/common/ParsedModel.h"

#include "compiler/driver/ModelText.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace hydra {

ParsedModel::ParsedModel() : diagnostics(&context) {
  DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<HydraDialect>();
}

LogicalResult ParsedModel::load(const std::string &text, const std::string &name,
                                const std::string &preset,
                                const std::vector<std::string> &settings) {
  BindingOptions binding;
  binding.preset = preset;
  binding.settings = settings;
  binding.batch = binding.seq = 1; // parameters are the same for all
  if (std::optional<TextPlace> deep = findDeepNesting(text))
    return emitError(FileLineColLoc::get(&context, name, deep->line, deep->column))
           << "brackets nest more than " << kMostNesting << " deep";
  source = parseSourceString<ModuleOp>(text, ParserConfig(&context), name);
  if (!source || !findModel(*source))
    return failure();
  PassManager passes(&context);
  passes.addPass(createBind(bindOptions(binding)));
  passes.addPass(createUnrollLayers());
  if (failed(passes.run(*source)) || diagnostics.errors() > 0)
    return failure();
  return success();
}

ModelOp ParsedModel::model() { return *source->getOps<ModelOp>().begin(); }

} // namespace hydra
