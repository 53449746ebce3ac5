// What changes a step by what the steps before it gave: a clip that follows the gradients' norm, a
// limit of the loss, a rate that is lowered behind a loss that rises, a decay that begins early, a
// phase that ends early.
//
// All of it is decided on the host, from numbers that a step gives anyway and that all ranks have
// in the same bits, for the steps behind it. What is kept is in checkpoints.
#pragma once

#include "runtime/run/PolicyFlags.h"
#include "runtime/run/Scalars.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// As a checkpoint keeps it: the flags, and numbers by their names.
struct SavedPolicies {
  PolicyFlags flags;
  std::map<std::string, double> numbers;
};

class StepPolicies {
public:
  /// A run that is resumed goes on with what was `saved`; a flag counts instead of a saved one.
  /// `phases`: the steps behind which the plan's phases end. Throws Error for a flag that means
  /// nothing, or nothing for these scalars and phases.
  StepPolicies(const PolicyFlags &flags, const SavedPolicies *saved, const Scalars &scalars,
               std::vector<int64_t> phases = {});

  /// Sets the numbers of step `step`, from 0, where they are not what their schedules say.
  void begin(int64_t step, Scalars &scalars) const;

  /// Takes what step `step` gave; `norm` is that of its gradients before clipping. A step that no
  /// label counts in says nothing and is not given. Returns what is decided, in a line; mostly
  /// nothing.
  std::string takeStep(int64_t step, double loss, std::optional<double> norm, Scalars &scalars);

  /// Whether a measurement behind so many steps is wanted, and was not taken yet.
  bool wantsEvaluation(int64_t steps) const;
  /// Takes the held-out loss behind so many steps, likewise.
  std::string takeEvaluation(int64_t steps, double loss, Scalars &scalars);

  /// How many steps earlier than in the plan the phases end from now on.
  int64_t stepsSaved() const;
  /// The steps behind which the phases of this run ended, or will, in their order.
  std::vector<int64_t> phaseEnds() const;

  /// For a checkpoint; nothing where no flag was given.
  std::optional<SavedPolicies> save() const;
  /// Each flag that is on with its text.
  PolicyFlags flags() const;

private:
  std::optional<double> get(const std::string &name) const;
  std::optional<double> clipAt(int64_t step, const Scalars &scalars) const;
  /// Whether the batch of a step is left out.
  bool filters(int64_t step, double loss, const Scalars &scalars);
  std::string watchSpike(int64_t step, double loss);
  std::string watchRise(int64_t steps, double loss, Scalars &scalars);
  std::string watchStart(int64_t step, double loss, Scalars &scalars);
  std::string watchPhase(int64_t step, double loss);
  /// By how many steps a phase, from 0, ended early.
  int64_t savedIn(size_t phase) const;

  SavedPolicies kept;
  Policies policies;
  std::vector<int64_t> phases; // the steps behind which they end in the plan
};

} // namespace hydra::runtime
