// Checkpoints: directories that hold a training run as it was after some step.
//
//   FOLDER/step-00000500/
//     model.safetensors      parameters, and states that are no moments
//     optimizer.safetensors  states that belong to a parameter: layers.3.wq.m, layers.3.wq.v
//     checkpoint.json        step, seed, data, the plan's identity, a hash of every tensor and of
//                            itself
//
// A checkpoint is written under a temporary name, synced and renamed: a directory with such a name
// is complete, whatever killed the process that wrote it.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/ranks/Ranks.h"
#include "runtime/run/Executor.h"
#include "runtime/run/Manifest.h"
#include "runtime/run/TensorFiles.h"
#include "runtime/support/TemporaryFolder.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace hydra::runtime {

/// The checkpoints of one run. While it lives, no other process can open the same folder.
class CheckpointFolder {
public:
  /// Creates the folder if need be, and removes what an interrupted save left in it. Throws Error
  /// when another process holds the folder, or when it has checkpoints of steps after `step`, where
  /// the run begins: two runs would mix. With `ranks` (writersOf) all of them make such an object
  /// together, and that of rank 0 does all this; Error too when another rank does not see what rank
  /// 0 creates there. Without, only rank 0 makes one.
  CheckpointFolder(const std::filesystem::path &path, int64_t step, Ranks *ranks = nullptr);
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;

  /// Saves all variables of the plan and returns the new directory; all ranks that have the folder
  /// call it. A checkpoint of the same step is replaced. Throws Error when it cannot be written,
  /// NotFinite when a value is not finite; then nothing of it remains, and the others are
  /// untouched.
  std::filesystem::path save(const PlanFile &file, Executor &executor, const TrainingState &state);

  /// Removes the oldest checkpoints of this run but `keep` >= 1, on rank 0. Throws Error when it
  /// cannot.
  void prune(int keep);

private:
  bool leads() const { return !ranks || ranks->leads(); }
  void open(int64_t step);
  void unlock() const;
  /// Gives a finished directory its name, in the place of one that has it.
  void place(const std::filesystem::path &temporary, const std::filesystem::path &target) const;
  void checkThatAllSeeIt();
  /// Fills a directory and gives it its name. Rank 0.
  void finish(support::TemporaryFolder &temporary, const PlanFile &file, const TrainingState &state,
              const std::map<std::string, std::string> &hashes);

  std::filesystem::path folder;
  Ranks *ranks;
  std::set<int64_t> own; // steps of this run's checkpoints
  int descriptor = -1;   // of the folder, locked; -1: rank 0 has it
};

/// A checkpoint that belongs to a plan.
class Checkpoint {
public:
  /// `path` is a checkpoint, or a folder of them, and then stands for the newest. Throws Error when
  /// there is none, when its files cannot be read, or when it was made by a plan of another model,
  /// precision, or other tokens in a step: the message says what differs. Into how many
  /// micro-batches, and on how many ranks, the rows of a step are cut does not matter.
  Checkpoint(const std::filesystem::path &path, const PlanFile &file);

  /// Whether there is one at `path`, or in the folder of that name.
  static bool exists(const std::filesystem::path &path);

  const std::filesystem::path &path() const { return directory; }
  const TrainingState &state() const { return manifest.state; }
  /// Whether it has averages of parameters that the plan does not go on with.
  bool leavesAverages() const { return manifest.leavesAverages; }

  /// Writes what this rank holds to the device, and checks every tensor against its hash: all ranks
  /// together those of which each reads a part. Throws Error that names the file and the tensor,
  /// and an older checkpoint if there is one; then what was written means nothing.
  void restore(Executor &executor, Ranks *ranks) const;

private:
  /// Throws Error where the optimizers of the plan keep something else than those that saved it.
  void checkOptimizer() const;
  class Restoring;

  const PlanFile &file;
  std::filesystem::path directory;
  Manifest manifest;
};

/// Writes the parameters alone. Throws Error when the file cannot be written, NotFinite when one of
/// them is not finite. `ranks` (writersOf): those that all call it.
void exportWeights(const std::filesystem::path &path, const PlanFile &file, Executor &executor,
                   Ranks *ranks = nullptr);

} // namespace hydra::runtime
