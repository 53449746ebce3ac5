// What hydrac prints besides plans.
#pragma once

#include "tools/hydrac/Options.h"

namespace hydra {

/// All passes in order, for `--list-passes`.
void printPasses();

/// The reports of a plan that the flags ask for.
void printReports(const HydracOptions &options, const planfile::PlanT &content);

/// A file that appears complete or not at all.
void writeFile(const std::string &path, const std::string &text);

} // namespace hydra
