// Choosing among the ways in which a plan's steps can be carried out, by measuring them.
#pragma once

#include "runtime/cuda/CudaProgram.h"
#include "runtime/cuda/DeviceLibrary.h"

#include <functional>
#include <map>
#include <optional>

namespace hydra::runtime::cuda {

/// bf16 numbers around 1 in every byte: zeros would need less power and run faster.
void fillRandomly(const Device &device, CUdeviceptr to, size_t size);

/// Microseconds of one run of several behind one another, by the median of several rounds.
double medianMicroseconds(const Device &device, const std::function<void()> &run);

/// Measures matmuls and attention of a loaded plan whose memory holds random numbers.
class Tuner {
public:
  using RunNode = std::function<void(const Node &, CUstream)>;

  /// `run` carries out a node as it was loaded.
  Tuner(const PlanFile &file, const Device &device, DeviceLibrary &library, RunNode run,
        bool allowNondeterministic)
      : plan(file.plan()), device(device), library(library), runNode(std::move(run)),
        allowNondeterministic(allowNondeterministic) {}

  /// Writes the fastest way of every step of `program` into `steps`, its own in the
  /// same order (null for switches).
  void tune(const CudaProgram &program, const std::vector<planfile::StepT *> &steps);

  /// What was measured, chosen and why.
  std::string report() const;

private:
  struct Tuned {
    std::string name, chosen;
    int64_t number = 0;               ///< of the chosen algorithm or alternative
    double guessed = 0.0, best = 0.0; ///< microseconds
    int steps = 0;
  };
  Tuned tuneMatmul(const Node &node);
  /// Of the launches from `first` on that one call can replace.
  Tuned tuneLaunches(std::span<const Node> launches);
  bool repeats(const DeviceCall &call, const Node &node, CUdeviceptr scratch);

  const planfile::Plan &plan;
  const Device &device;
  DeviceLibrary &library;
  RunNode runNode;
  bool allowNondeterministic;
  std::vector<const void *> order; ///< of `choices`, as they were met
  std::map<const void *, Tuned> choices;
};

} // namespace hydra::runtime::cuda
