// Runs plans for CUDA targets: every program is captured once and replayed as one graph.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"

#include <memory>

namespace hydra::runtime {

class Channel;

struct CudaOptions {
  int device = 0;
  bool graph = true;      ///< replay a captured graph; otherwise launch step by step
  int64_t graphAfter = 0; ///< how often a program runs step by step before it is captured
  bool check = false;     ///< wait after every step, so that an error names it
  bool poison = false;    ///< before a program, fill what it must write before it reads (Poison.h)
  bool allowNondeterministic = false; ///< tunePlan may choose what does not repeat its bits
  bool profile =
      false; ///< times of steps will be asked for: of replayed graphs where CUPTI is found
  bool oneStream = false;   ///< one step behind the other, whatever the plan says
  unsigned threads = 0;     ///< of the host, for work between steps; 0: one for each processor
  Channel *ranks = nullptr; ///< of a plan with a mesh: all ranks load it at the same time
};

/// Whether this build can run plans on GPUs at all.
bool builtWithCuda();

/// Loads a plan. Throws Error, in one line, for all that can be wrong: no GPU or driver, another
/// architecture, too little memory, a call that does not fit. The plan file must outlive the
/// executor.
std::unique_ptr<Executor> makeCudaExecutor(const PlanFile &file, const CudaOptions &options);

/// Measures the algorithms that cuBLASLt has for each matmul of the plan, and cuDNN's attention
/// beside the own, on random numbers, and writes the fastest into `content`, the same plan. What
/// gives other bits in another run is not taken unless that is allowed. Returns a table of what was
/// chosen and why.
std::string tunePlan(const PlanFile &file, const CudaOptions &options, planfile::PlanT &content);

} // namespace hydra::runtime
