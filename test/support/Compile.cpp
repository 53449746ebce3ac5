// Compiling and running models inside a test.
#include "test/support/Compile.h"

#include "compiler/driver/PassInstruments.h"
#include "test/support/Random.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cstring>
#include <utility>

using namespace mlir;

namespace hydra::test {

Compiler::Compiler()
    : context(MLIRContext::Threading::DISABLED), handler(&context, [this](Diagnostic &diagnostic) {
        std::string text;
        llvm::raw_string_ostream out(text);
        if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
          out << place.getFilename().getValue() << ':' << place.getLine() << ':'
              << place.getColumn() << ": ";
        out << diagnostic;
        diagnostics.push_back(text);
        errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
        return success();
      }) {
  context.loadDialect<HydraDialect>();
}

OwningOpRef<ModuleOp> Compiler::parse(StringRef text, StringRef name) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), SMLoc());
  return parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
}

OwningOpRef<ModuleOp> Compiler::parseFile(const std::string &path) {
  return parseSourceFile<ModuleOp>(path, ParserConfig(&context));
}

bool Compiler::run(ModuleOp module, llvm::function_ref<void(PassManager &)> build) {
  PassManager passes(&context);
  passes.addInstrumentation(createLocationCheck());
  build(passes);
  unsigned before = errors;
  return succeeded(passes.run(module)) && errors == before;
}

bool Compiler::run(ModuleOp module, std::unique_ptr<Pass> pass) {
  return run(module, [&](OpPassManager &passes) { passes.addPass(std::move(pass)); });
}

std::string Compiler::takeDiagnostics() {
  std::string text;
  for (const std::string &line : std::exchange(diagnostics, {}))
    text += line + "\n";
  return text;
}

std::string sourcePath(StringRef path) { return (HYDRA_SOURCE_DIR "/" + path).str(); }

std::unique_ptr<Pass> bindPass(const BindingOptions &binding) {
  BindOptions options;
  options.preset = binding.preset;
  options.set.assign(binding.settings.begin(), binding.settings.end());
  options.programs.assign(binding.programs.begin(), binding.programs.end());
  options.batch = binding.batch;
  options.seq = binding.seq;
  options.mesh.assign(binding.mesh.begin(), binding.mesh.end());
  return createBind(options);
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

ModelOp modelOf(ModuleOp module) { return *module.getOps<ModelOp>().begin(); }

EntryOp programOf(ModuleOp module, StringRef name) {
  return modelOf(module).lookupSymbol<EntryOp>(name);
}

static RefTensor randomReals(StringRef name, RankedTensorType type, uint64_t seed) {
  RefTensor tensor(type.getShape());
  Random random(seed ^ llvm::xxh3_64bits(name));
  for (double &v : tensor.data)
    v = name.ends_with(".v") ? std::abs(random.uniform()) : random.uniform();
  return tensor;
}

static RefTensor randomIds(StringRef name, RankedTensorType type, int64_t limit, uint64_t seed) {
  RefTensor tensor(type.getShape());
  Random random(seed ^ llvm::xxh3_64bits(name));
  for (double &v : tensor.data)
    v = name == "labels" && random.chance(0.1) ? -100 : random.below(limit);
  return tensor;
}

TensorMap randomValues(EntryOp program, uint64_t seed) {
  auto model = program->getParentOfType<ModelOp>();
  auto vocabulary = dyn_cast_or_null<IntegerAttr>(model.getSymbolValue("V"));
  const int64_t limit = vocabulary ? vocabulary.getInt() : 2;
  TensorMap values;
  for (auto [name, argument] : llvm::zip(program.getArgNames().getAsValueRange<StringAttr>(),
                                         program.getBody().getArguments())) {
    auto type = cast<RankedTensorType>(argument.getType());
    values[name] = isa<FloatType>(type.getElementType()) ? randomReals(name, type, seed)
                                                         : randomIds(name, type, limit, seed);
  }
  for (Operation &op : model.getBody().front()) {
    if (auto param = dyn_cast<ParamOp>(op))
      values[param.getSymName()] = randomReals(param.getSymName(), param.getBoundType(), seed);
    else if (auto state = dyn_cast<StateOp>(op))
      values[state.getSymName()] = randomReals(state.getSymName(), state.getBoundType(), seed);
  }
  return values;
}

RefTensor scalar(double value) { return RefTensor(ArrayRef<int64_t>(), value); }

bool sameBits(const RefTensor &a, const RefTensor &b) {
  return a.shape == b.shape &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(double)) == 0;
}

} // namespace hydra::test
