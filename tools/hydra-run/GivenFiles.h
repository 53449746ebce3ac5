// Files that a run begins with.
#pragma once

#include "runtime/run/Checkpoint.h"
#include "tools/hydra-run/Options.h"

#include <filesystem>
#include <optional>
#include <string>

namespace hydra {

/// The checkpoint of --resume, as far as there is one.
std::optional<runtime::Checkpoint> findCheckpoint(const RunOptions &options,
                                                  const runtime::PlanFile &file);

/// Files of parameters and averages, both of one checkpoint.
struct GivenFiles {
  std::optional<std::string> weights;
  std::optional<std::filesystem::path> averages;
};

/// What --weights names, a file, or the parameters of a checkpoint or of the newest in a folder;
/// and where the averages of --average are.
GivenFiles givenFiles(const RunOptions &options, const runtime::Checkpoint *checkpoint);

} // namespace hydra
