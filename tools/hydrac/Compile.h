// From a model file to the plan, its reports, or the text of a phase.
#pragma once

#include "tools/hydrac/Options.h"

namespace hydra {

/// Does what the flags ask for, which the preset completes. Reports what is wrong with the model;
/// throws support::Error for what is wrong with flags, files or the target.
llvm::LogicalResult compile(HydracOptions &options);

} // namespace hydra
