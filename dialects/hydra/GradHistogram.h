// Histograms of gradients, as passes write them into programs.
#pragma once

#include "runtime/support/GradHistogram.h"

namespace hydra {

using support::kExponents;
using support::kFirstExponent;
using support::kGradHistogram;

} // namespace hydra
