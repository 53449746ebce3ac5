// checkpoint.json: which step of which run a checkpoint holds, and hashes of its tensors.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/SafetyMonitor.h"
#include "runtime/run/StepPolicies.h"
#include "runtime/run/TensorHashes.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace hydra::runtime {

/// Where a training run stands, beside the values of its variables. The batches of a step follow
/// from seed, data and step alone, so this is all of the random state.
struct TrainingState {
  int64_t step = 0; // updates made
  uint64_t seed = 0;
  std::string data;                             // what batches come from: see BatchSource::identity
  std::map<std::string, std::string> schedules; // of scalars, in words
  std::optional<SavedSchedules> scalars = {};   // the same in numbers; older ones have words alone
  std::optional<SavedPolicies> policies = {};   // if there are any
  struct Counts {                               // over all steps
    uint64_t tokens = 0;
    int64_t skipped = 0;       // whose update was refused
    int64_t skippedInARow = 0; // the last ones, which were not finite
    int64_t clipped = 0;       // whose gradients were longer than the clip
  } counts = {};
  std::optional<SafetyState> safety = {}; // of a plan whose programs have safe forms
};

struct Manifest {
  TrainingState state;
  TensorHashes hashes;
  bool countsUpdates = true;   ///< false in the oldest one: every step was one
  bool leavesAverages = false; ///< it has averages of parameters, and the plan makes none
};

/// Of a checkpoint that belongs to the plan. Throws Error when it cannot be read, is damaged, or
/// was made by a plan of another model, precision, or other tokens in a step: the message says what
/// differs.
Manifest readManifest(const std::filesystem::path &checkpoint, const PlanFile &file);

/// What the manifest says of the tensors alone, whatever plan they are of; nothing where there is
/// no manifest. Throws Error when it cannot be read, or is damaged.
std::optional<TensorHashes> readHashes(const std::filesystem::path &checkpoint);

/// The file's text.
std::string manifestText(const PlanFile &file, const TrainingState &state,
                         const std::map<std::string, std::string> &hashes);

/// Rows of tokens that a step reads; its micro-batches where it reads something else.
int64_t sequencesOfStep(const planfile::Plan &plan);

} // namespace hydra::runtime
