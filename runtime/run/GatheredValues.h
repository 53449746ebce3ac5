// What programs have left on the devices of all ranks.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/ranks/Ranks.h"
#include "runtime/run/Executor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Reads numbers of this rank, and with all ranks, which then make the same calls, what each has a
/// part of. Plan, executor and ranks outlive it.
class GatheredValues {
public:
  /// `ranks`: null where there is one.
  GatheredValues(const PlanFile &file, Executor &executor, Ranks *ranks)
      : file(file), executor(executor), ranks(ranks) {}

  /// One number, without allocating: it is read in every step.
  double scalar(uint32_t tensor) const;
  /// Dense bytes of an output, of all ranks' parts on rank 0; nothing on others for one in parts.
  std::vector<std::byte> output(const planfile::Output &output) const;
  /// Gives all elements of a variable, in pieces, on rank 0; others hand in theirs.
  void variable(const planfile::Variable &variable,
                const std::function<void(std::span<const std::byte>)> &take) const;
  /// How many parameters are not finite, and the first of them; empty if all are.
  std::string badParameters() const;

private:
  uint32_t rank() const { return ranks ? ranks->rank() : 0; }

  const PlanFile &file;
  Executor &executor;
  Ranks *ranks;
};

} // namespace hydra::runtime
