// The flags of hydra-run, group by group, in the order of its help.
#pragma once

#include "tools/hydra-run/FlagGroup.h"
#include "tools/hydra-run/Options.h"

namespace hydra {

void addData(CLI::App &app, RunOptions &options);
void addTraining(CLI::App &app, RunOptions &options);
/// Steps that follow from others.
void addPolicies(CLI::App &app, RunOptions &options);
void addCheckpoints(CLI::App &app, RunOptions &options);
/// Reports, measurements, and what they are written to.
void addReports(CLI::App &app, RunOptions &options);
/// Generated text and conversations.
void addGeneration(CLI::App &app, RunOptions &options);

} // namespace hydra
