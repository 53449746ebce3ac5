// Lowers a model with each of its forms, and compares what is predicted.
#include "tools/hydrac/Forms.h"

#include "runtime/report/PlanTimes.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/support/Error.h"
#include "tools/hydrac/Lower.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

using namespace mlir;

namespace hydra {

namespace {

constexpr StringLiteral kAuto = "auto";

/// A choice that is to be made.
struct Choice {
  std::string name;
  std::vector<std::string> forms; ///< as the model lists them
};

/// What the choice is, from the default, the preset and the settings, of which later ones win.
std::string valueOf(ModelOp model, const BindingOptions &binding, StringRef name,
                    Attribute standard) {
  std::string value;
  const auto take = [&](Attribute given) {
    if (auto word = dyn_cast_if_present<StringAttr>(given))
      value = word.str();
  };
  take(standard);
  for (PresetOp preset : model.getBody().getOps<PresetOp>())
    if (preset.getPreset() == binding.preset)
      take(preset.getValues().get(name));
  for (StringRef setting : binding.settings)
    if (auto [key, text] = setting.split('='); key.trim() == name)
      value = text.trim().str();
  return value;
}

std::vector<Choice> openChoices(ModelOp model, const BindingOptions &binding) {
  std::vector<Choice> open;
  for (SymbolsOp symbols : model.getBody().getOps<SymbolsOp>())
    for (auto [name, standard, options] :
         llvm::zip(symbols.getNames().getAsValueRange<StringAttr>(), symbols.getDefaults(),
                   symbols.getOptions())) {
      Choice choice{name.str(), {}};
      for (StringRef option : cast<ArrayAttr>(options).getAsValueRange<StringAttr>())
        choice.forms.push_back(option.str());
      if (std::erase(choice.forms, kAuto) > 0 && !choice.forms.empty() &&
          valueOf(model, binding, name, standard) == kAuto)
        open.push_back(std::move(choice));
    }
  return open;
}

/// What came of a form.
struct Trial {
  std::string form;
  double microseconds = 0;
  bool fits = false;
};

/// Those that have a plan.
std::vector<Trial> tryForms(HydracOptions &options, const Choice &choice) {
  std::vector<std::string> &settings = options.compile.binding.settings;
  std::vector<Trial> trials;
  for (const std::string &form : choice.forms) {
    settings.push_back(choice.name + "=" + form);
    const FailureOr<Lowered> lowered = lower(options, {.care = Driver::Care::Trial});
    settings.pop_back();
    if (failed(lowered) || !lowered->outline)
      continue;
    const report::PackedPlan plan(*lowered->outline);
    trials.push_back({form, report::predictedStep(*plan).total,
                      bytesOf(*lowered->outline) <= options.memoryBudgetBytes()});
  }
  return trials;
}

std::string choose(HydracOptions &options, const Choice &choice) {
  const std::string expected =
      fmt::format("expected {}={}", choice.name, fmt::join(choice.forms, "|"));
  if (options.until.getNumOccurrences() > 0)
    support::fail("{}=auto: --compile-to ends before times are predicted; {}", choice.name,
                  expected);
  const std::vector<Trial> trials = tryForms(options, choice);
  if (trials.empty())
    support::fail("{}=auto: the model has a plan with none of its forms; {}, which says why",
                  choice.name, expected);
  if (std::ranges::any_of(trials, [](const Trial &trial) { return trial.microseconds <= 0; }))
    support::fail("{}=auto: the target '{}' predicts no times; {}", choice.name,
                  options.target.getValue(), expected);
  const auto best = std::ranges::min_element(trials, [](const Trial &a, const Trial &b) {
    return std::pair(!a.fits, a.microseconds) < std::pair(!b.fits, b.microseconds);
  });
  options.compile.binding.settings.push_back(choice.name + "=" + best->form);
  std::vector<std::string> others;
  for (const Trial &trial : trials)
    if (&trial != &*best)
      others.push_back(fmt::format("{}: {:.4f} ms{}", trial.form, trial.microseconds * 1e-3,
                                   trial.fits ? "" : ", which does not fit"));
  return fmt::format("{}={}, predicted {:.4f} ms a step{}", choice.name, best->form,
                     best->microseconds * 1e-3,
                     others.empty() ? "" : fmt::format(" ({})", fmt::join(others, ", ")));
}

} // namespace

std::vector<std::string> chooseForms(HydracOptions &options) {
  std::vector<Choice> open;
  if (options.model.file.empty()) // which is said when it is compiled
    return {};
  {
    Driver driver(options.model, /*timed=*/false, Driver::Care::Trial);
    if (failed(driver.load()))
      return {};
    open = openChoices(driver.model(), options.compile.binding);
  }
  for (const Choice &choice : open) // what is chosen later is of its first form until then
    options.compile.binding.settings.push_back(choice.name + "=" + choice.forms.front());
  std::vector<std::string> lines;
  for (const Choice &choice : open)
    lines.push_back(choose(options, choice));
  return lines;
}

} // namespace hydra
