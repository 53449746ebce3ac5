// How a step's cost is shared out to the phases of a training step.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <array>

namespace hydra::report {

using PhaseShares = std::array<double, static_cast<size_t>(planfile::Phase::MAX) + 1>;

/// The part of a step that each phase has, by FLOPs; 1 in all.
inline PhaseShares phaseShares(const planfile::Step &step) {
  PhaseShares shares{};
  const auto *flops = step.phase_flops();
  if (!flops || step.cost()->flops() == 0)
    shares[static_cast<size_t>(step.phase())] = 1;
  else
    for (flatbuffers::uoffset_t i = 0; i < flops->size(); ++i)
      shares[i] = double(flops->Get(i)) / double(step.cost()->flops());
  return shares;
}

} // namespace hydra::report
