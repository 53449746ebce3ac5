// One version of a document as the compiler sees it.
#include "tools/hydra-lsp/Analysis.h"

#include "compiler/driver/Diagnostics.h"
#include "compiler/driver/ModelText.h"
#include "dialects/hydra/ModelNames.h"
#include "passes/Passes.h"
#include "passes/bind/AllErrors.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using Severity = llvm::lsp::DiagnosticSeverity;

namespace hydra::lsp {

/// Problems that are shown of a text.
static constexpr size_t kMostFindings = 100;

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
    : names(names), declarations(names), choice(std::move(given)), wrong(declarations.size()),
      context(MLIRContext::Threading::DISABLED) {
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
  read();
  if (module && written().isBound()) { // what a pass has written
    if (!hasErrors())
      boundModule = module->clone();
  } else if (module && isComplete()) {
    bindChoice();
  }
}

//===-- Parsing -----------------------------------------------------------------------------===//

void Analysis::read() {
  const StringRef text = names.source().str();
  if (std::optional<TextPlace> deep = findDeepNesting(text)) {
    emitError(FileLineColLoc::get(&context, "", deep->line, deep->column))
        << "brackets nest more than " << kMostNesting << " deep";
    return;
  }
  module = parse(text);
  // Where braces do not match, what is left out would not be what has the error.
  if (!module && parses(declarations.without(BitVector(declarations.size(), true)))) {
    findSyntaxErrors();
    module = rest();
  }
  while (module && !verify(*module))
    module = markWrong() ? rest() : nullptr;
  if (module && !findModel(*module))
    module = nullptr;
}

Analysis::Module Analysis::parse(StringRef text) {
  if (!isTrial)
    lastErrors.clear();
  return parseSourceString<ModuleOp>(text, ParserConfig(&context, /*verifyAfterParse=*/false));
}

bool Analysis::parses(StringRef text) {
  isTrial = true;
  const bool parsed = static_cast<bool>(parse(text));
  isTrial = false;
  return parsed;
}

/// The parser ends with the first error. What comes behind the declaration that has it is parsed
/// again, without what is in front.
void Analysis::findSyntaxErrors() {
  while (!lastErrors.empty()) {
    const unsigned culprit = culpritOf(lastErrors.front());
    if (culprit == kNone || wrong.test(culprit))
      return;
    wrong.set(culprit);
    const size_t before = list.size();
    if (isEnough() || parse(declarations.behind(culprit)))
      return;
    // An error in what is left out is about that it is left out.
    if (const unsigned next = declarations.at(lastErrors.front());
        next == kNone || next <= culprit) {
      list.resize(before);
      return;
    }
  }
}

unsigned Analysis::culpritOf(size_t place) {
  const unsigned number = declarations.at(place);
  if (number == kNone)
    return kNone;
  // Where one has no end, the error is in what comes next, which is right by itself: in another
  // declaration, or at the end of the stack.
  SmallVector<unsigned> candidates = {number};
  for (unsigned i = number + 1; i < declarations.size() && declarations[i].stack == number; ++i)
    if (declarations[i].end <= place)
      candidates.front() = i;
  if (candidates.front() != number)
    candidates.push_back(number);
  if (number > 0 && declarations[number].stack != number - 1)
    candidates.push_back(number - 1);
  for (unsigned candidate : candidates)
    if (!wrong.test(candidate) && !parses(declarations.only(candidate, wrong)))
      return candidate;
  return number;
}

bool Analysis::markWrong() {
  bool anyNew = false;
  for (size_t place : lastErrors)
    if (const unsigned number = declarations.at(place); number != kNone && !wrong.test(number)) {
      wrong.set(number);
      anyNew = true;
    }
  return anyNew;
}

Analysis::Module Analysis::rest() {
  // The parser tells of values that nothing defines once it has read all, so of these once more.
  while (wrong.any() && !isEnough()) {
    if (Module parsed = parse(declarations.without(declarations.dependents(wrong))))
      return parsed;
    if (!markWrong())
      break;
  }
  return nullptr;
}

//===-- Verifying ---------------------------------------------------------------------------===//

/// Verifies an operation and what is in it, and ends with no error of one of several.
static bool verifyEach(Operation *op) {
  if (failed(op->getName().verifyInvariants(op)))
    return false;
  bool isRight = true;
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      isRight &= verifyEach(&inner);
  return isRight && succeeded(op->getName().verifyRegionInvariants(op));
}

bool Analysis::verify(ModuleOp of) {
  lastErrors.clear();
  for (Operation &op : *of.getBody())
    if (!isa<ModelOp>(op) && failed(mlir::verify(&op))) // one tells that it has no model around it
      return false;
  bool isRight = true;
  for (ModelOp model : of.getOps<ModelOp>()) {
    isRight &= succeeded(model->getName().verifyInvariants(model));
    for (Operation &op : model.getBody().front())
      isRight &= verifyEach(&op) && succeeded(mlir::verify(&op));
    isRight = isRight && succeeded(mlir::detail::verifySymbolTable(model)) &&
              succeeded(verifyNames(model));
  }
  // What is left to say is that nothing uses something, which is true of whole texts alone, and in
  // the way of nothing.
  if (isRight && wrong.none())
    (void)mlir::verify(of);
  return isRight;
}

bool Analysis::isEnough() const {
  constexpr std::chrono::seconds kMostTime{3}; // of those that a worker has
  return list.size() >= kMostFindings || std::chrono::steady_clock::now() >= started + kMostTime;
}

bool Analysis::hasErrors() const {
  return llvm::any_of(list, [](const Finding &f) { return f.severity == Severity::Error; });
}

//===-- Binding -----------------------------------------------------------------------------===//

void Analysis::bindChoice() {
  settleBatch();
  const std::string &preset = choice.binding.preset;
  if (!preset.empty() && llvm::none_of(written().getBody().getOps<PresetOp>(),
                                       [&](PresetOp op) { return op.getPreset() == preset; }))
    return; // it is wrong
  source = sourceText(choice.binding);
  OwningOpRef<ModuleOp> copy = module->clone();
  PassManager passes(&context);
  passes.enableVerifier(false);
  BindOptions options = bindOptions(choice.binding);
  options.callSites = true;
  passes.addPass(createBindWithAllErrors(options));
  if (succeeded(passes.run(*copy)) && verify(*copy) && !hasErrors())
    boundModule = std::move(copy);
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

size_t Analysis::offsetOf(Location location) const {
  const std::optional<Place> place = placeOf(location);
  return place ? names.source().offsetOfPlace(place->first, place->second) : 0;
}

/// The token at a place; where there is none, the last one in front of it on the line, or a
/// character.
void Analysis::cover(Location location, size_t &begin, size_t &end) const {
  begin = end = offsetOf(location);
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
  if (isTrial)
    return;
  constexpr size_t kMostCalls = 8;
  Finding finding;
  cover(diagnostic.getLocation(), finding.begin, finding.end);
  finding.severity = diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error ? Severity::Error
                     : diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning
                         ? Severity::Warning
                         : Severity::Information;
  if (finding.severity == Severity::Error)
    lastErrors.push_back(offsetOf(diagnostic.getLocation()));
  finding.source = source;
  finding.message = asLine(diagnostic.str());
  for (Diagnostic &other : diagnostic.getNotes()) {
    Finding::Note note;
    cover(other.getLocation(), note.begin, note.end);
    note.message = asLine(other.str());
    finding.notes.push_back(std::move(note));
  }
  // A definition is bound for each call of it.
  auto same = llvm::find_if(list, [&](const Finding &f) {
    return f.begin == finding.begin && f.end == finding.end && f.message == finding.message;
  });
  if (same == list.end()) {
    if (list.size() == kMostFindings)
      return;
    same = list.insert(list.end(), std::move(finding));
  }
  for (const auto &[line, column] : callPlacesOf(diagnostic.getLocation())) {
    Finding::Note call;
    cover(FileLineColLoc::get(&context, "", line, column), call.begin, call.end);
    call.message = "called here";
    if (same->notes.size() < kMostCalls &&
        llvm::none_of(same->notes, [&](const auto &n) { return n.begin == call.begin; }))
      same->notes.push_back(std::move(call));
  }
}

} // namespace hydra::lsp
