// From a model file to the plan.
#include "tools/hydrac/Compile.h"

#include "compiler/Backends.h"
#include "compiler/codegen/cpu/CpuModule.h"
#include "compiler/driver/Driver.h"
#include "compiler/emit/EmitPlan.h"
#include "compiler/emit/SafeForm.h"
#include "passes/precision/Policy.h"
#include "runtime/calls/CheckCalls.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "tools/hydrac/Budget.h"
#include "tools/hydrac/Explain.h"
#include "tools/hydrac/FasterLayers.h"
#include "tools/hydrac/Forms.h"
#include "tools/hydrac/Lower.h"
#include "tools/hydrac/PresetSettings.h"
#include "tools/hydrac/Reports.h"
#include "tools/hydrac/SafeForm.h"

#include "llvm/ADT/Hashing.h"

#include <fmt/ranges.h>

using namespace mlir;

namespace hydra {

static void writeText(const std::string &path, ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  if (path == "-")
    printOutput(text);
  else
    writeFile(path, text);
}

static LogicalResult explain(const HydracOptions &options) {
  return printExplanation(
      [&](const std::string &without) -> FailureOr<std::unique_ptr<planfile::PlanT>> {
        FailureOr<Lowered> lowered = lower(options, {.without = without});
        if (failed(lowered))
          return failure();
        options.checkScalars(*lowered->outline);
        return std::move(lowered->outline);
      });
}

/// Throws Error for a plan that takes more memory than it may.
static void checkFits(const HydracOptions &options, const CompileOptions &compile,
                      const planfile::PlanT &plan) {
  const uint64_t needed = bytesOf(plan), there = options.memoryBudgetBytes();
  if (needed <= there || options.allowOversize)
    return;
  std::vector<std::string> helps = {compile.mode == Mode::Generate
                                        ? "a smaller --batch, --context or --prefill"
                                        : "a smaller --batch or --seq"};
  if (hasBackward(compile.mode) && !options.chooses())
    helps.emplace_back("--recompute=auto");
  if (compile.update.exchange == AccumExchange::Last)
    helps.emplace_back("--accum-exchange=each");
  if (compile.offload == Offload::None && compile.mode == Mode::Train && hasMoments(plan))
    helps.emplace_back("--offload=optimizer");
  if (!precisionPolicy(compile.precision)->holdsValues())
    helps.emplace_back("--precision=bf16");
  if (options.impliesSafeForm())
    helps.emplace_back("--safe=off");
  else if (options.hasSafeForm())
    helps.emplace_back("a safe form with more in it, such as --safe=attention=flash");
  helps.emplace_back("or --allow-oversize, to write it all the same");
  support::fail("the plan needs {}, {} more than the {} of {}; what helps: {}",
                report::bytesText(needed), report::bytesText(needed - there),
                report::bytesText(there),
                isGiven(options.memoryBudget) ? "--memory-budget" : compile.target.name,
                fmt::join(helps, ", "));
}

/// Throws Error for a mesh that no executor runs.
static void checkRanks(const CompileOptions &compile, const planfile::PlanT &plan) {
  uint64_t ranks = 1;
  for (const auto &axis : plan.mesh)
    ranks *= axis->size;
  if (ranks > 1 && !backendOf(compile.target).hasCollectives())
    support::fail("--mesh: {} runs plans on one device; plans for several ranks are for a CPU",
                  compile.target.name);
}

/// Whether no plan is written.
static bool isForReports(const HydracOptions &options) {
  return options.reports() && options.output.getNumOccurrences() == 0;
}

/// The plan that was lowered, with its kernels.
static FailureOr<std::unique_ptr<planfile::PlanT>> withCode(const HydracOptions &options,
                                                            Lowered &lowered) {
  plan::PlanModuleOp module = planOf(lowered.driver->module());
  TimingScope scope = lowered.driver->time("Code generation");
  const Target &target = lowered.compile.target;
  static cpu::ObjectCache objects; // a plan and its other forms have many kernels in common
  FailureOr<CompiledKernels> kernels =
      backendOf(target).compileKernels(module, target,
                                       {.cache = options.codeFolder(),
                                        .objects = &objects,
                                        .resources = isGiven(options.kernelReport),
                                        .onlyTexts = isForReports(options)});
  if (failed(kernels))
    return failure();
  lowered.emit.code = std::move(*kernels);
  auto content = emitPlan(module, lowered.emit);
  if (failed(content) || failed(lowered.driver->verdict()))
    return failure();
  return content;
}

/// Of a program behind all passes: equal where a pass has changed nothing.
static llvm::hash_code contentOf(const Lowered &lowered) {
  std::string text;
  llvm::raw_string_ostream os(text);
  planOf(lowered.driver->module()).print(os);
  return llvm::hash_value(text);
}

/// The forms without one optimization each, beside a plan and its safe form.
class FormsWithout {
public:
  /// `outline`: of the plan with its safe form and the list of its optimizations.
  FormsWithout(const HydracOptions &options, const Setting *setting, const Lowered &fast,
               planfile::PlanT &outline)
      : options(options), setting(setting), plain(contentOf(fast)), outline(outline) {}

  /// Those that --pretests asks for, with their code unless a report alone is wanted. Among all
  /// of them one that cannot be there is left out, which is said; one that is named fails.
  LogicalResult make(const Optimizations &optimizations, bool withKernels) {
    if (optimizations.size() == 1)
      return success(); // without it the plan is its safe form
    for (const auto &one : optimizations) {
      const Asked asked = isAsked(options, *one);
      if (asked == Asked::No)
        continue;
      try {
        if (failed(make(*one, withKernels)))
          return failure();
      } catch (const support::Error &error) {
        if (asked == Asked::ByName)
          throw;
        printProblem(fmt::format("--pretests: not without {}: {}", one->name, error.what()));
      }
    }
    return success();
  }

  /// Adds them to a plan with code, and what is said of theirs.
  void addTo(planfile::PlanT &plan, AssemblerVerdict &verdict) {
    for (Form &form : forms) {
      addFormWithout(plan, std::move(*form.content), form.name);
      verdict.add(form.verdict);
    }
  }

private:
  LogicalResult make(const planfile::OptimizationT &one, bool withKernels) {
    FailureOr<Lowered> lowered = lower(options, {.setting = setting, .omitted = &one});
    if (failed(lowered))
      return failure();
    // What kernels look like inside can follow from a flag alone.
    if (isPass(one) && contentOf(*lowered) == plain)
      return success();
    planfile::PlanT joined = outline;
    addFormWithout(joined, std::move(*lowered->outline), one.name);
    checkMemory(joined);
    if (withKernels) {
      FailureOr<std::unique_ptr<planfile::PlanT>> content = withCode(options, *lowered);
      if (failed(content))
        return failure();
      Form &form = forms.emplace_back(Form{one.name, std::move(*content), {}});
      if (isGiven(options.kernelReport))
        form.verdict.add(*form.content, lowered->emit.code);
    }
    outline = std::move(joined);
    return success();
  }

  /// A form that is there to be compared does not decide whether a plan fits. Throws Error.
  void checkMemory(const planfile::PlanT &joined) const {
    const uint64_t needed = bytesOf(joined), there = options.memoryBudgetBytes();
    if (needed > there && needed > bytesOf(outline) && !options.allowOversize)
      support::fail("with it the plan needs {}, {} more than there are", report::bytesText(needed),
                    report::bytesText(needed - there));
  }

  const HydracOptions &options;
  const Setting *const setting;
  const llvm::hash_code plain;
  planfile::PlanT &outline;

  struct Form {
    std::string name;
    std::unique_ptr<planfile::PlanT> content;
    AssemblerVerdict verdict; ///< where it is asked for
  };
  std::vector<Form> forms;
};

static Optimizations copyOf(const Optimizations &optimizations) {
  Optimizations copies;
  for (const auto &one : optimizations)
    copies.push_back(std::make_unique<planfile::OptimizationT>(*one));
  return copies;
}

static LogicalResult compileWhole(const HydracOptions &options) {
  if (options.explain)
    return explain(options);
  std::optional<Setting> setting;
  if (options.chooses()) {
    FailureOr<Setting> chosen = chooseSetting(options);
    if (failed(chosen))
      return failure();
    setting = *chosen;
  }
  FailureOr<Lowered> lowered = lower(options, {.setting = setting ? &*setting : nullptr});
  if (failed(lowered))
    return failure();
  auto &[driver, compile, emit, outline] = *lowered;
  if (!outline) {
    writeText(options.output.getNumOccurrences() ? options.output.getValue() : "-",
              driver->module());
    return success();
  }
  std::optional<Lowered> safe;
  std::optional<FormsWithout> without;
  Optimizations optimizations;
  const bool onlyReports = isForReports(options);
  const bool ofKernels = isGiven(options.kernelReport), withKernels = !onlyReports || ofKernels;
  if (options.hasSafeForm()) {
    FailureOr<Lowered> other =
        lower(options, {.setting = setting ? &*setting : nullptr, .safe = true});
    if (failed(other))
      return failure();
    safe.emplace(std::move(*other));
    optimizations = optimizationsOf(*lowered, *safe);
    checkPretestNames(options, optimizations);
    addSafeForm(*outline, std::move(*safe->outline));
    outline->optimizations = copyOf(optimizations);
    without.emplace(options, setting ? &*setting : nullptr, *lowered, *outline);
    if (failed(without->make(optimizations, withKernels)))
      return failure();
  }
  options.checkScalars(*outline);
  printReports(options, *outline);
  if (!withKernels)
    return success();
  if (!onlyReports) {
    checkFits(options, compile, *outline);
    checkRanks(compile, *outline);
  }
  FailureOr<std::unique_ptr<planfile::PlanT>> content = withCode(options, *lowered);
  if (failed(content))
    return failure();
  AssemblerVerdict verdict;
  if (ofKernels)
    verdict.add(**content, emit.code);
  if (safe) {
    FailureOr<std::unique_ptr<planfile::PlanT>> other = withCode(options, *safe);
    if (failed(other))
      return failure();
    if (ofKernels)
      verdict.add(**other, safe->emit.code);
    addSafeForm(**content, std::move(**other));
    (*content)->optimizations = std::move(optimizations);
    without->addTo(**content, verdict);
  }
  if (ofKernels)
    printKernelReport(options, **content, verdict);
  if (onlyReports)
    return success();
  const runtime::PlanFile plan =
      runtime::PlanFile::parse(runtime::encodePlan(**content), options.output.getValue());
  runtime::checkCalls(plan.plan()); // what an executor would refuse is not written
  runtime::writePlan(options.output.getValue(), plan);
  return success();
}

LogicalResult compile(HydracOptions &options) {
  const std::string taken = takePresetSettings(options);
  options.check();
  checkScans(options);
  if (!taken.empty())
    printProblem(taken);
  for (const std::string &chosen : chooseForms(options))
    printProblem(chosen);
  if (const std::string chosen = chooseFasterLayers(options); !chosen.empty())
    printProblem(chosen);
  return compileWhole(options);
}

} // namespace hydra
