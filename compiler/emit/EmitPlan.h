// From the plan dialect to the tables of a plan file.
#pragma once

#include "compiler/PlanPipeline.h"
#include "compiler/codegen/CompiledKernels.h"
#include "compiler/targets/Target.h"
#include "dialects/plan/Plan.h"
#include "runtime/plan/plan_generated.h"

#include <memory>

namespace hydra {

/// What the plan says about itself and runs on.
struct EmitOptions {
  std::string producer, modelFile, precision;
  Mode mode = Mode::Train;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> passes;
  Target target;
  uint32_t accumulation = 1;
  uint64_t context = 0;                                 ///< of programs that read on
  std::map<std::string, planfile::ScheduleT> schedules; ///< of scalars, instead of constants
  std::vector<TrainingPhase> phases;                    ///< before `train`, in their order
  CompiledKernels code;                                 ///< without blobs: a plan for reports
};

/// The module must have been through hydra-plan-memory. Reports initialisers without a value and
/// memory that no process can address.
llvm::FailureOr<std::unique_ptr<planfile::PlanT>> emitPlan(plan::PlanModuleOp module,
                                                           const EmitOptions &options);

} // namespace hydra
