// What a placed plan needs of memory, for people and programs.
#pragma once

#include "dialects/plan/Plan.h"

namespace hydra {

/// Peak, largest sum of live bytes, fragmentation of each program, and bytes by category; as a
/// table or as JSON. The module must have been through hydra-plan-memory.
void printMemoryReport(plan::PlanModuleOp module, bool json, llvm::raw_ostream &os);

} // namespace hydra
