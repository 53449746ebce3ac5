// What the kernels of a plan for a GPU take, and what their assembler warns of.
#pragma once

#include "compiler/codegen/CompiledKernels.h"
#include "runtime/plan/plan_generated.h"

#include <string>
#include <vector>

namespace hydra {

/// What the assembler says of a plan's code.
struct AssemblerVerdict {
  std::vector<KernelResources> kernels; ///< of those of the plan, in their order
  std::vector<std::string> warnings;    ///< of no kernel alone

  /// Adds what is said of the code of a plan that was compiled with `resources`, whose kernels
  /// stand behind those that are there.
  void add(const planfile::PlanT &plan, const CompiledKernels &code);
  void add(const AssemblerVerdict &other);
};

/// The kernels that spill registers or that the assembler warns of; for each program the kernels
/// that it launches, those in front, with registers, bytes of stack, spills and shared memory,
/// threads of a block and launches; the sums of all kernels. Launches are those of a step where a
/// step runs the program, else of a run; a loop counts as often as it runs, a switch as its longest
/// case. Kernels of libraries are not there.
std::string kernelReportText(const planfile::Plan &plan, const AssemblerVerdict &verdict);
/// The same tables in Markdown.
std::string kernelReportMarkdown(const planfile::Plan &plan, const AssemblerVerdict &verdict);

/// The same: {"target", "programs": [{"name", "runs_a_step" (0: a step does not run it),
/// "launches", "kernels": [KERNEL]}], "warnings" (of no kernel alone), "total": {"kernels",
/// "spilling", "spill_store_bytes", "spill_load_bytes", "warnings"}}, where a KERNEL is {"name",
/// "launches", "threads", "registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes",
/// "static_shared_bytes", "dynamic_shared_bytes", "warnings"}.
std::string kernelReportJson(const planfile::Plan &plan, const AssemblerVerdict &verdict);

} // namespace hydra
