// The first passes of every compilation, and no others.
#include "tools/common/ParsedModel.h"

#include "compiler/driver/ModelText.h"
#include "passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace hydra {

ParsedModel::ParsedModel() : diagnostics(&context) {
  context.loadDialect<HydraDialect>();
}

LogicalResult ParsedModel::load(const std::string &text, const std::string &name,
                                const std::string &preset,
                                const std::vector<std::string> &settings) {
  BindOptions binding;
  binding.preset = preset;
  binding.set.assign(settings.begin(), settings.end());
  binding.batch = binding.seq = 1; // parameters are the same for all
  if (std::optional<TextPlace> deep = findDeepNesting(text))
    return emitError(FileLineColLoc::get(&context, name, deep->line, deep->column))
           << "brackets nest more than " << kMostNesting << " deep";
  source = parseSourceString<ModuleOp>(text, ParserConfig(&context), name);
  if (!source || !findModel(*source))
    return failure();
  PassManager passes(&context);
  passes.addPass(createBind(binding));
  passes.addPass(createUnrollLayers());
  if (failed(passes.run(*source)) || diagnostics.errors() > 0)
    return failure();
  return success();
}

ModelOp ParsedModel::model() { return *source->getOps<ModelOp>().begin(); }

} // namespace hydra
