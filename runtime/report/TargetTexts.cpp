// Texts that CMake has put together.
#include "runtime/report/TargetTexts.h"

namespace hydra::report {

static constexpr TargetText kTexts[] = {
#include "runtime/report/BuiltInTargets.inc"
};

std::span<const TargetText> targetTexts() { return kTexts; }

} // namespace hydra::report
