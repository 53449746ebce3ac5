// hydra-differential reduce: the smallest program and setting that still show a finding.
#include "test/fuzz/differential/Commands.h"
#include "test/fuzz/differential/ModelLines.h"
#include "test/fuzz/differential/Reduce.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <cstdio>

namespace hydra::test {

using support::fail;

namespace {

/// Shape and element type as the reducer wants them.
std::string typeText(mlir::Type type) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor)
    return {};
  std::string element;
  llvm::raw_string_ostream(element) << tensor.getElementType();
  return shapeText(tensor.getShape()) + " " + element;
}

/// The types of values by name: of those of an entry by making them results of it, of others by the
/// line of the operation.
std::map<std::string, std::string> typesOf(Compiler &compiler, const Case &source) {
  std::map<std::string, std::string> types;
  const ModelLines lines(source.source.text);
  const auto bind = [&](const std::string &text, auto read) {
    mlir::OwningOpRef<mlir::ModuleOp> module = compiler.parse(text, "text");
    BindingOptions binding = source.source.binding;
    binding.programs = {"loss:loss"};
    if (module && compiler.run(*module, bindPass(binding)))
      read(*module);
    compiler.takeDiagnostics();
  };
  bind(lines.text(), [&](mlir::ModuleOp module) {
    module.walk([&](mlir::Operation *op) {
      auto place = op->getLoc()->findInstanceOf<mlir::FileLineColLoc>();
      if (!place || place.getLine() == 0 || place.getLine() > lines.lines.size())
        return;
      const std::optional<StatementLines> s = lines.statement(place.getLine() - 1);
      if (!s || s->results.size() != op->getNumResults() || s->op == "when")
        return;
      for (auto [name, value] : llvm::zip(s->results, op->getResults()))
        types.try_emplace(name, typeText(value.getType()));
    });
  });
  // Results of scans and conditions have no operation of their own.
  for (size_t l = 0; l < lines.lines.size(); ++l) {
    if (lines.lines[l].find("hydra.return loss = ") == std::string::npos)
      continue;
    const size_t indent = lines.lines[l].find("hydra.");
    std::string outputs;
    std::vector<std::string> names;
    for (const StatementLines &s : lines.statements())
      if (s.begin < l &&
          (s.op == "scan" || s.op == "when" || s.op == "prefix_scan" || s.op == "for" ||
           s.op == "call") &&
          lines.lines[s.begin].find('%') == indent)
        for (const std::string &name : s.results) {
          names.push_back(name);
          outputs += fmt::format(", type_{} = {}", names.size(), name);
        }
    ModelLines probe = lines;
    std::string &end = probe.lines[l];
    end.insert(std::min(end.find(" updates("), end.size()), outputs);
    bind(probe.text(), [&](mlir::ModuleOp module) {
      EntryOp entry = programOf(module);
      for (auto [i, name] : llvm::enumerate(names))
        if (mlir::Value value = entry.getReturn().getOutput(fmt::format("type_{}", i + 1)))
          types[name] = typeText(value.getType());
    });
  }
  return types;
}

class ReduceCommand final : public Command, public CaseRunner {
public:
  explicit ReduceCommand(CLI::App &app) : CaseRunner(common) {
    command = app.add_subcommand("reduce", "prints the smallest program that still fails alike");
    command->add_option("file", file, "the model")->required();
    command
        ->add_option("--setting", settingTexts,
                     "that fails; of two with other bits both, the one that fails last")
        ->required();
    command
        ->add_option("--seconds", seconds,
                     "until the smallest one so far is printed "
                     "(default: 120)")
        ->check(CLI::PositiveNumber);
    options.add(*command);
    common.add(*command);
  }

  int main() override {
    source = options.read(file);
    for (const std::string &text : settingTexts)
      settings.push_back(common.parse(text));
    common.checkTarget();
    CaseRunner::begin(); // here, so that every process has it
    original = verdictOf();
    if (original.outcome == Outcome::Right || original.outcome == Outcome::RefusedByOracle)
      fail("{}: {} under {}; there is nothing to reduce{}", file, nameOf(original.outcome),
           settings.back().text(), original.detail.empty() ? "" : ": " + original.detail);
    const auto begin = std::chrono::steady_clock::now();
    reduceSettings();
    const ReduceQuestions questions = {[&](const std::string &text) { return shows(text); },
                                       [&](const std::string &text) { return types(text); }};
    source.source.text = reduceText(source.source.text, questions, {std::chrono::seconds(seconds)});
    reduceBinding();
    reduceSettings();
    const Verdict verdict = verdictOf();
    std::printf("// flags: %s\n// %s under %s: %s\n%s", source.flags().c_str(),
                nameOf(verdict.outcome), settings.back().text().c_str(), verdict.detail.c_str(),
                source.source.text.c_str());
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::fprintf(stderr, "hydra-differential: %u programs tried in %.0f s\n", tries, took);
    return 1; // what is printed is a finding
  }

  Case makeJob(uint64_t) const override { return source; }
  std::vector<Setting> settingsOf(uint64_t, const Case &) const override { return settings; }

  Verdict run(uint64_t job, uint32_t part) override {
    if (!wantsTypes)
      return CaseRunner::run(job, part);
    std::string text; // one line
    for (const auto &[name, type] : typesOf(*compiler, source))
      text += name + "=" + type + ";";
    return {Outcome::Right, text};
  }

private:
  /// What the last setting comes to, or an earlier one that does not even get through.
  Verdict verdictOf() {
    ++tries;
    Verdict last;
    WorkerOptions workers = common.workers();
    workers.processes = 1;
    // A hang is looked for no longer than it needs to be seen.
    constexpr std::chrono::milliseconds kLonger{10000};
    if (tries > 1 && original.outcome != Outcome::Hung)
      workers.limit = std::min(workers.limit, kLonger);
    runJobs(*this, 0, 1, workers, [&](const Report &report) { last = report.verdict; });
    return last;
  }

  bool isLike(const Verdict &verdict) const {
    if (verdict.outcome != original.outcome)
      return false;
    if (verdict.outcome == Outcome::Wrong) {
      constexpr double kClear = 1e-2, kPart = 0.1;
      return verdict.severity >= std::min(kClear, kPart * original.severity);
    }
    const bool hasReason = verdict.outcome == Outcome::RefusedByCompiler ||
                           verdict.outcome == Outcome::RefusedByExecutor;
    return !hasReason || reasonOf(verdict.detail) == reasonOf(original.detail);
  }

  bool shows(const std::string &text) {
    const std::string before = std::exchange(source.source.text, text);
    const bool result = isLike(verdictOf());
    source.source.text = before;
    return result;
  }

  std::map<std::string, std::string> types(const std::string &text) {
    const std::string before = std::exchange(source.source.text, text);
    wantsTypes = true;
    const std::string found = verdictOf().detail;
    wantsTypes = false;
    source.source.text = before;
    std::map<std::string, std::string> types;
    for (llvm::StringRef rest = found; !rest.empty();) {
      auto [entry, behind] = rest.split(';');
      auto [name, type] = entry.split('=');
      types[name.str()] = type.str();
      rest = behind;
    }
    return types;
  }

  /// Tries a change of all settings.
  template <typename Change> void trySettings(Change change) {
    const std::vector<Setting> before = settings;
    for (Setting &setting : settings)
      change(setting);
    if (settings == before || !isLike(verdictOf()))
      settings = before;
  }

  void reduceSettings() {
    if (settings.size() > 1) { // the first is of use only where bits are compared
      const std::vector<Setting> before = settings;
      settings.erase(settings.begin(), settings.end() - 1);
      if (!isLike(verdictOf()))
        settings = before;
    }
    const Setting plain;
    for (size_t i = 0; i < settings.size(); ++i) {
      const std::vector<std::string> disabled = settings[i].disabled;
      for (const std::string &name : disabled)
        trySettings([&](Setting &s) { std::erase(s.disabled, name); });
    }
    trySettings([&](Setting &s) { s.threads = plain.threads; });
    trySettings([&](Setting &s) { s.recompute = plain.recompute; });
    trySettings([&](Setting &s) { s.scanCheckpoint = plain.scanCheckpoint; });
    trySettings([&](Setting &s) { s.ceChunk = plain.ceChunk; });
    trySettings([&](Setting &s) { s.attention = plain.attention; });
    trySettings([&](Setting &s) { s.precision = plain.precision; });
    trySettings([&](Setting &s) { s.logits = plain.logits; });
    trySettings([&](Setting &s) { s.gradients = plain.gradients; });
    trySettings([&](Setting &s) { s.layerPrecision.clear(); });
    trySettings([&](Setting &s) { s.reduce = plain.reduce; });
    trySettings([&](Setting &s) { s.accumExchange = plain.accumExchange; });
    trySettings([&](Setting &s) { s.accumulation = plain.accumulation; });
    trySettings([&](Setting &s) { s.clip = plain.clip; });
    trySettings([&](Setting &s) { s.noClip = true; });
    trySettings([&](Setting &s) {
      s.noClip = plain.noClip;
      s.mode = Mode::Grad;
      s.accumulation = plain.accumulation;
      s.clip = plain.clip;
    });
    trySettings([&](Setting &s) {
      s.mode = Mode::Forward;
      s.scanCheckpoint = plain.scanCheckpoint;
      s.recompute = plain.recompute;
    });
    trySettings([&](Setting &s) { s.plainCode = plain.plainCode; });
  }

  void reduceBinding() {
    BindingOptions &binding = source.source.binding;
    for (int64_t *size : {&binding.batch, &binding.seq})
      for (const int64_t less : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, *size / 2}) {
        if (less >= *size)
          continue;
        const int64_t before = std::exchange(*size, less);
        if (isLike(verdictOf()))
          break;
        *size = before;
      }
    for (const std::string &setting : std::vector<std::string>(binding.settings)) {
      const std::vector<std::string> before = binding.settings;
      std::erase(binding.settings, setting);
      if (!isLike(verdictOf()))
        binding.settings = before;
    }
  }

  std::string file;
  std::vector<std::string> settingTexts;
  uint64_t seconds = 120;
  FileOptions options;
  Case source;
  std::vector<Setting> settings;
  Verdict original;
  bool wantsTypes = false;
  unsigned tries = 0;
};

} // namespace

std::unique_ptr<Command> makeReduceCommand(CLI::App &app) {
  return std::make_unique<ReduceCommand>(app);
}

} // namespace hydra::test
