// What hydrac prints besides plans.
#pragma once

#include "tools/hydrac/KernelReport.h"
#include "tools/hydrac/Options.h"

namespace hydra {

/// All passes in order, for `--list-passes`.
void printPasses();

/// The reports of a plan, which need not have code, that the flags ask for.
void printReports(const HydracOptions &options, const planfile::PlanT &content);

/// That of the kernels of a plan with code, which the flags ask for.
void printKernelReport(const HydracOptions &options, const planfile::PlanT &content,
                       const AssemblerVerdict &verdict);

/// A file that appears complete or not at all.
void writeFile(const std::string &path, const std::string &text);

} // namespace hydra
