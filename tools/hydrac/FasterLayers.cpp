// Lowers a model with one layer after another in bf16, and compares what is predicted.
#include "tools/hydrac/FasterLayers.h"

#include "runtime/report/PlanTimes.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/support/Error.h"
#include "tools/hydrac/Budget.h"
#include "tools/hydrac/Lower.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/ranges.h>

#include <optional>
#include <vector>

using namespace mlir;

namespace hydra {

namespace {

using Patterns = std::vector<std::string>;

constexpr StringLiteral kAuto = "auto", kDefault = "default";

/// `layers.3.wo` as `layers.*.wo`: the parameters of all elements; empty without an element.
std::string patternOf(StringRef name) {
  bool hasElement = false;
  std::vector<std::string> parts;
  for (StringRef part : llvm::split(name, '.')) {
    const bool isElement = llvm::all_of(part, llvm::isDigit);
    hasElement |= isElement;
    parts.push_back(isElement ? "*" : part.str());
  }
  return hasElement ? llvm::join(parts, ".") : "";
}

/// What stays in bf16 beside what does by default, and the microseconds of a step.
struct Choice {
  Patterns kept;
  double step = 0;
};

/// Plans that differ in what stays in bf16.
class Trials {
public:
  explicit Trials(HydracOptions &options) : options(options) {
    const std::unique_ptr<planfile::PlanT> plan = planWith({});
    if (!plan)
      support::fail("--fp8-keep=auto: the model has no plan; expected --fp8-keep=default, "
                    "which says why");
    (void)stepOf(*plan); // whether times are predicted
    const size_t least = options.compile.quantization.least;
    for (const auto &variable : plan->variables) {
      if (variable->role != planfile::VariableRole::parameter)
        continue;
      const auto &sizes = plan->tensors[variable->tensor]->shape;
      std::string pattern = patternOf(variable->name);
      if (!pattern.empty() && !llvm::is_contained(layers, pattern) && sizes.size() > 1 &&
          llvm::all_of(sizes, [&](auto size) { return size_t(size) >= least; }))
        layers.push_back(std::move(pattern));
    }
  }

  /// A step that keeps so much, as --recompute=auto makes it, if it is given; none where there is
  /// no plan. What is compared with it is made alike.
  std::optional<double> settleFor(const Patterns &kept) {
    setKeep(kept);
    if (options.chooses()) {
      const FailureOr<Setting> chosen = chooseSetting(options, /*reports=*/false);
      if (failed(chosen))
        return std::nullopt;
      setting = *chosen;
      setting->gatherAhead.reset(); // as much as fits
      setting->exchangeBytes.reset();
    }
    return with(kept);
  }

  /// Of the layers that gain alone, the one that gains most first, those that gain together;
  /// `all` is the step without.
  Choice fasterThan(double all) {
    std::vector<Choice> gains;
    for (const std::string &layer : layers)
      if (const std::optional<double> step = with({layer}); step && *step < all)
        gains.push_back({{layer}, *step});
    llvm::stable_sort(gains, [](const Choice &a, const Choice &b) { return a.step < b.step; });
    Choice best{.kept = {}, .step = all};
    for (const Choice &gain : gains) {
      Patterns more = best.kept;
      llvm::append_range(more, gain.kept);
      const std::optional<double> step = more.size() == 1 ? gain.step : with(more);
      if (step && *step < best.step)
        best = {std::move(more), *step};
    }
    return best;
  }

  std::optional<double> with(const Patterns &kept) {
    const std::unique_ptr<planfile::PlanT> plan = planWith(kept);
    return plan ? std::optional(stepOf(*plan)) : std::nullopt;
  }

  /// The same; none too where it does not fit the memory that there is.
  std::optional<double> settleIfItFits(const Patterns &kept) {
    try {
      return settleFor(kept);
    } catch (const support::Error &) {
      return std::nullopt;
    }
  }

  std::optional<double> inBf16() {
    const std::string precision = std::exchange(options.compile.precision, "bf16");
    const std::optional<double> step = settleIfItFits({});
    options.compile.precision = precision;
    return step;
  }

private:
  void setKeep(const Patterns &kept) {
    Patterns &keep = options.compile.quantization.keep;
    keep = {kDefault.str()};
    llvm::append_range(keep, kept);
  }

  std::unique_ptr<planfile::PlanT> planWith(const Patterns &kept) {
    setKeep(kept);
    FailureOr<Lowered> lowered =
        lower(options, {.setting = setting ? &*setting : nullptr, .care = Driver::Care::Trial});
    return failed(lowered) ? nullptr : std::move(lowered->outline);
  }

  double stepOf(const planfile::PlanT &content) {
    const report::PackedPlan plan(content);
    const double step = report::predictedStep(*plan).total;
    if (step <= 0)
      support::fail("--fp8-keep=auto: the target '{}' predicts no times",
                    options.target.getValue());
    return step;
  }

  HydracOptions &options;
  Patterns layers;
  std::optional<Setting> setting; ///< what --recompute=auto chooses beside; none without it
};

/// What is recomputed depends on what is in 8 bits, and the other way round: each is chosen for the
/// other until nothing changes, a few times at most, and the fastest of these plans is taken.
/// `all`: the step with all in 8 bits that are by default.
Choice fastest(Trials &trials, bool chooses, double &all) {
  constexpr int kMostRounds = 3;
  Choice best;
  Patterns kept;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::optional<double> step =
        round == 0 ? trials.settleFor(kept) : trials.settleIfItFits(kept);
    if (!step && round == 0)
      support::fail("--fp8-keep=auto: the model has no plan with what --recompute=auto chooses; "
                    "expected --fp8-keep=default, which says why");
    if (!step)
      break;
    if (round == 0)
      all = *step;
    if (round == 0 || *step < best.step)
      best = {kept, *step};
    // What is there without: under this setting, which may be another than that of `all`.
    const std::optional<double> without = kept.empty() ? step : trials.with({});
    Choice next = trials.fasterThan(without.value_or(*step));
    if (!chooses)
      return next;
    if (next.kept == kept)
      break;
    kept = std::move(next.kept);
  }
  return best;
}

} // namespace

std::string chooseFasterLayers(HydracOptions &options) {
  Patterns &keep = options.compile.quantization.keep;
  if (!llvm::is_contained(keep, kAuto))
    return "";
  if (keep.size() > 1)
    support::fail("--fp8-keep=auto chooses by itself; expected no other pattern with it");
  if (options.until.getNumOccurrences() > 0)
    support::fail("--fp8-keep=auto: --compile-to ends before times are predicted");
  Trials trials(options);
  double all = 0;
  const auto [kept, best] = fastest(trials, options.chooses(), all);
  const std::optional<double> bf16 = trials.inBf16();
  if (bf16 && *bf16 <= best)
    support::fail("--fp8-keep=auto: no layer is faster in 8 bits; predicted {:.4f} ms a step, in "
                  "bf16 {:.4f} ms; expected --precision=bf16, or --fp8-keep=default",
                  best * 1e-3, *bf16 * 1e-3);
  keep = {kDefault.str()};
  llvm::append_range(keep, kept);
  return fmt::format("fp8-keep={}, predicted {:.4f} ms a step ({}in bf16: {})",
                     fmt::join(keep, ","), best * 1e-3,
                     kept.empty() ? "" : fmt::format("default: {:.4f} ms, ", all * 1e-3),
                     bf16 ? fmt::format("{:.4f} ms", *bf16 * 1e-3) : "no plan");
}

} // namespace hydra
