// What --recompute=auto compared, as text, JSON and a picture.
#pragma once

#include "tools/hydrac/Settings.h"

namespace hydra {

/// Of a search, for the reports that the flags ask for. `chosen` is nothing where no plan fits.
struct BudgetOutcome {
  const SettingChoices &settings;
  const budget::Search &search;
  std::optional<budget::Point> chosen;
  uint64_t bytes = 0;      ///< there may be
  std::string target = {}; ///< its name
  std::string title = {};  ///< of the picture
};

/// What is chosen; what each choice by itself costs and saves beside the fastest plan; all plans,
/// the fastest first, with those of which no other one is faster and smaller.
std::string budgetText(const BudgetOutcome &outcome, bool markdown);

/// The same: {"budget_bytes", "chosen" (null: nothing fits), "fastest": PLAN, "choices": [{"flags",
/// "microseconds", "bytes", "changes"}], differences to the fastest, "plans": [PLAN]}, where a PLAN
/// is {"flags", "microseconds", "bytes", "fits", "front"}.
std::string budgetJson(const BudgetOutcome &outcome);

/// Time over memory: all plans, the front as a line, the budget, and the chosen one.
std::string budgetSvg(const BudgetOutcome &outcome);

} // namespace hydra
