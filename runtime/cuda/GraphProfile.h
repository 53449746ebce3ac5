// Times of the steps of replayed graphs, as CUPTI records them.
#pragma once

#include "runtime/cuda/CudaProgram.h"
#include "runtime/cuda/Cupti.h"
#include "runtime/run/Executor.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hydra::runtime::cuda {

class GraphProfile {
public:
  /// Of these programs, whose nodes' times it adds up.
  GraphProfile(const planfile::Plan &plan, std::vector<CudaProgram> &programs)
      : plan(plan), programs(programs) {}

  /// Looks CUPTI up, before a graph is captured.
  void load() { cupti = Cupti::load(whyNot); }
  bool isLoaded() const { return cupti != nullptr; }
  /// What was missing; empty where it was not looked for.
  const std::string &whyNotLoaded() const { return whyNot; }

  /// A graph is about to be captured.
  void beginGraph() { cupti->beginGraph(); }
  /// A node has just been put into a stream; `known`: nodes of the graph so far.
  void note(const CudaProgram &program, const Node &node, CUstream stream,
            std::set<CUgraphNode> &known);

  /// Forgets what was recorded, and records from now on.
  void start();
  /// Adds what was recorded since it was asked last to the times of nodes.
  void takeRecords();
  /// All runs of steps since `start`, as far as they were taken.
  const std::vector<StepRun> &stepRuns() const { return runs; }

  /// Seconds on the clock of the runs.
  double now() const {
    return 1e-9 * static_cast<double>(static_cast<int64_t>(cupti->now() - origin));
  }
  /// A graph was started.
  void noteLaunch(HostRun launch) { started.push_back(std::move(launch)); }
  /// All since `start`, each with the number of what it started.
  std::vector<HostRun> launches() const;

private:
  bool canBe(const planfile::Step &step, std::string_view kernel) const;

  const planfile::Plan &plan;
  std::vector<CudaProgram> &programs;
  std::unique_ptr<Cupti> cupti;
  std::string whyNot;
  std::vector<StepRun> runs;
  std::vector<HostRun> started;
  uint64_t origin = 0; ///< of their times, ns: so that doubles hold what follows
};

} // namespace hydra::runtime::cuda
