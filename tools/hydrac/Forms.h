// Which form of a computation is the fastest, where a model has several.
#pragma once

#include "tools/hydrac/Options.h"

#include <string>
#include <vector>

namespace hydra {

/// A choice of a model with an option `auto` has forms of the same results as its other options.
/// Where settings, preset or default say `auto`, gives the flags the one with the least predicted
/// time of a step among those that fit the memory budget (the first of equals; without one that
/// fits, of all). Each is lowered once, with the first form of choices that are made later. Of a
/// model that cannot be read nothing is chosen; what is wrong is said when it is compiled. Throws
/// support::Error where nothing is predicted, or no form has a plan. Returns what was chosen, such
/// as `ema=fft, predicted 1.2500 ms a step (scan: 1.5000 ms, sequential: 80.0000 ms)`.
std::vector<std::string> chooseForms(HydracOptions &options);

} // namespace hydra
