// --recompute=auto: the fastest plan that fits the budget.
#pragma once

#include "tools/hydrac/Settings.h"

namespace hydra {

/// Compares plans without code, and prints the reports about that which the flags ask for, unless
/// `reports` is false: it is one choice of several then. Reports what is wrong with the model; throws support::Error where nothing fits, unless --allow-oversize
/// is given: then it is what takes least.
llvm::FailureOr<Setting> chooseSetting(const HydracOptions &options, bool reports = true);

} // namespace hydra
