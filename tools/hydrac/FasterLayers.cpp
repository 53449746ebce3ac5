// Lowers a model with one layer after another in bf16, and compares what is predicted.
#include "tools/hydrac/FasterLayers.h"

#include "runtime/report/PlanTimes.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/support/Error.h"
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

/// Plans that differ in what stays in bf16.
class Trials {
public:
  explicit Trials(HydracOptions &options) : options(options) {
    const std::unique_ptr<planfile::PlanT> plan = planWith({});
    if (!plan)
      support::fail("--fp8-keep=auto: the model has no plan; expected --fp8-keep=default, "
                    "which says why");
    all = stepOf(*plan);
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

  /// Microseconds of a step; none where there is no plan.
  std::optional<double> with(const Patterns &kept) {
    const std::unique_ptr<planfile::PlanT> plan = planWith(kept);
    return plan ? std::optional(stepOf(*plan)) : std::nullopt;
  }

  std::optional<double> inBf16() {
    const std::string precision = std::exchange(options.compile.precision, "bf16");
    const std::optional<double> step = with({});
    options.compile.precision = precision;
    return step;
  }

  double all = 0; ///< the step with all in 8 bits that are by default
  Patterns layers;

private:
  std::unique_ptr<planfile::PlanT> planWith(const Patterns &kept) {
    Patterns &keep = options.compile.quantization.keep;
    keep = {kDefault.str()};
    llvm::append_range(keep, kept);
    FailureOr<Lowered> lowered = lower(options, {.care = Driver::Care::Trial});
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
};

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
  struct Gain {
    double step;
    std::string layer;
  };
  std::vector<Gain> gains;
  for (const std::string &layer : trials.layers)
    if (const std::optional<double> step = trials.with({layer}); step && *step < trials.all)
      gains.push_back({*step, layer});
  llvm::stable_sort(gains, [](const Gain &a, const Gain &b) { return a.step < b.step; });
  Patterns kept;
  double best = trials.all;
  for (const Gain &gain : gains) {
    kept.push_back(gain.layer);
    const std::optional<double> step = kept.size() == 1 ? gain.step : trials.with(kept);
    if (step && *step < best)
      best = *step;
    else
      kept.pop_back();
  }
  const std::optional<double> bf16 = trials.inBf16();
  if (bf16 && *bf16 <= best)
    support::fail("--fp8-keep=auto: no layer is faster in 8 bits; predicted {:.4f} ms a step, in "
                  "bf16 {:.4f} ms; expected --precision=bf16, or --fp8-keep=default",
                  best * 1e-3, *bf16 * 1e-3);
  keep = {kDefault.str()};
  llvm::append_range(keep, kept);
  return fmt::format("fp8-keep={}, predicted {:.4f} ms a step ({}in bf16: {})",
                     fmt::join(keep, ","), best * 1e-3,
                     kept.empty() ? "" : fmt::format("default: {:.4f} ms, ", trials.all * 1e-3),
                     bf16 ? fmt::format("{:.4f} ms", *bf16 * 1e-3) : "no plan");
}

} // namespace hydra
