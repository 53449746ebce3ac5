// The descriptions of targets that come with the programs.
#pragma once

#include <span>

namespace hydra::report {

struct TargetText {
  const char *name, *text; ///< JSON, as compiler/targets/Target.h reads it
};

/// The files of compiler/targets.
std::span<const TargetText> targetTexts();

} // namespace hydra::report
