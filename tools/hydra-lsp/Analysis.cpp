// One version of a document as the compiler sees it.
#include "tools/hydra-lsp/Analysis.h"

#include "compiler/driver/Diagnostics.h"
#include "compiler/driver/ModelText.h"
#include "passes/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using Severity = llvm::lsp::DiagnosticSeverity;

namespace hydra::lsp {

std::optional<Place> placeOf(Location location) {
  std::optional<Place> place;
  location->walk([&](Location l) {
    if (auto file = dyn_cast<FileLineColLoc>(l))
      place = {file.getLine(), file.getColumn()};
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

std::vector<Place> callPlacesOf(Location location) {
  std::vector<Place> places;
  location->walk([&](Location l) {
    if (auto call = dyn_cast<CallSiteLoc>(l))
      if (std::optional<Place> place = placeOf(call.getCaller()))
        places.push_back(*place);
    return WalkResult::advance();
  });
  return places;
}

static ModelOp modelOf(OwningOpRef<ModuleOp> &module) {
  if (!module)
    return nullptr;
  auto models = module->getOps<ModelOp>();
  return models.empty() ? ModelOp() : *models.begin();
}

/// `hydra (tiny, B = 2, S = 8)`: with what it is wrong.
static std::string sourceText(const BindingOptions &binding) {
  std::vector<std::string> parts;
  if (!binding.preset.empty())
    parts.push_back(binding.preset);
  if (binding.batch > 0)
    parts.push_back("B = " + std::to_string(binding.batch));
  if (binding.seq > 0)
    parts.push_back("S = " + std::to_string(binding.seq));
  return parts.empty() ? "hydra" : "hydra (" + llvm::join(parts, ", ") + ")";
}

Analysis::Analysis(const Names &names, Choice given)
    : names(names), choice(std::move(given)), context(MLIRContext::Threading::DISABLED) {
  context.printOpOnDiagnostic(false);
  // What is found beside the list, as by `bind`, is for nobody.
  context.getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
  context.loadDialect<HydraDialect>();
  for (const ConfigurationProblem &problem : choice.problems)
    list.push_back({problem.begin, problem.end, Severity::Warning, source, problem.message, {}});
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    note(diagnostic);
    return success();
  });
  parse();
  if (module && written().isBound()) // what a pass has written
    boundModule = module->clone();
  if (!module || boundModule || !isComplete())
    return;
  settleBatch();
  source = sourceText(choice.binding);
  const size_t before = list.size();
  OwningOpRef<ModuleOp> copy = module->clone();
  PassManager passes(&context);
  BindOptions options = bindOptions(choice.binding);
  options.callSites = true;
  passes.addPass(createBind(options));
  if (succeeded(passes.run(*copy)) &&
      llvm::none_of(ArrayRef(list).drop_front(before),
                    [](const Finding &f) { return f.severity == Severity::Error; }))
    boundModule = std::move(copy);
}

void Analysis::parse() {
  const StringRef text = names.source().str();
  if (std::optional<TextPlace> deep = findDeepNesting(text)) {
    emitError(FileLineColLoc::get(&context, "", deep->line, deep->column))
        << "brackets nest more than " << kMostNesting << " deep";
    return;
  }
  module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (module && !findModel(*module))
    module = nullptr;
}

ModelOp Analysis::written() { return modelOf(module); }
ModelOp Analysis::bound() { return modelOf(boundModule); }

OwningOpRef<ModuleOp> Analysis::bind(const BindingOptions &binding) {
  OwningOpRef<ModuleOp> copy = module->clone();
  PassManager passes(&context);
  passes.enableVerifier(false);
  passes.addPass(createBind(bindOptions(binding)));
  return succeeded(passes.run(*copy)) ? std::move(copy) : nullptr;
}

bool Analysis::isComplete() {
  ModelOp model = written();
  auto isSet = [&](StringRef name) {
    return llvm::any_of(choice.binding.settings, [&](const std::string &setting) {
      return StringRef(setting).split('=').first.trim() == name;
    });
  };
  // Without a preset, what needs one is a template and nothing else.
  if (choice.binding.preset.empty())
    for (SymbolsOp symbols : model.getBody().getOps<SymbolsOp>())
      for (auto [name, value] : llvm::zip(symbols.getNames(), symbols.getDefaults()))
        if (isa<UnitAttr>(value) && !isSet(cast<StringAttr>(name)))
          return false;
  bool complete = true;
  for (EntryOp entry : model.getBody().getOps<EntryOp>())
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>())
      if (dim != "B" && dim != "S" && !isSet(dim)) {
        emitRemark(entry.getLoc()) << "dimension '" << dim << "' of @" << entry.getSymName()
                                   << " has no value here; a comment can give it one: // "
                                   << kCommentMark << " --set=" << dim << "=16";
        complete = false;
      }
  return complete;
}

/// Batch and sequence are for models whose entries have them.
void Analysis::settleBatch() {
  bool batch = false, seq = false;
  for (EntryOp entry : written().getBody().getOps<EntryOp>())
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>()) {
      batch |= dim == "B";
      seq |= dim == "S";
    }
  choice.binding.batch *= batch;
  choice.binding.seq *= seq;
}

/// The token at a place; where there is none, the last one in front of it on the line, or a
/// character.
void Analysis::cover(Location location, size_t &begin, size_t &end) const {
  const std::optional<Place> place = placeOf(location);
  const Text &text = names.source();
  begin = place ? text.offsetOfPlace(place->first, place->second) : 0;
  end = begin;
  const unsigned before = names.tokenBefore(begin + 1);
  if (before == kNone)
    return;
  const Token &token = names.allTokens()[before];
  if (token.end > begin)
    end = token.end;
  else
    begin = token.begin, end = token.end;
}

void Analysis::note(Diagnostic &diagnostic) {
  constexpr size_t kMost = 100;
  if (list.size() >= kMost)
    return;
  Finding finding;
  cover(diagnostic.getLocation(), finding.begin, finding.end);
  finding.severity = diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error ? Severity::Error
                     : diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning
                         ? Severity::Warning
                         : Severity::Information;
  finding.source = source;
  finding.message = asLine(diagnostic.str());
  for (Diagnostic &other : diagnostic.getNotes()) {
    Finding::Note note;
    cover(other.getLocation(), note.begin, note.end);
    note.message = asLine(other.str());
    finding.notes.push_back(std::move(note));
  }
  list.push_back(std::move(finding));
}

} // namespace hydra::lsp
