// hydra-run --resume, --weights and --average: where the files are.
#include "tools/hydra-run/GivenFiles.h"
#include "runtime/run/CheckpointNames.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "tools/hydra-run/RunDirectory.h"

using namespace hydra;
using support::fail;

std::optional<runtime::Checkpoint> hydra::findCheckpoint(const RunOptions &options,
                                                         const runtime::PlanFile &file) {
  if (!options.resume)
    return std::nullopt;
  if (*options.resume != "auto")
    return runtime::Checkpoint(*options.resume, file);
  if (!runtime::Checkpoint::exists(*options.save))
    return std::nullopt;
  return runtime::Checkpoint(*options.save, file);
}

namespace {

using runtime::kParametersFile;
using runtime::kStatesFile;

/// The folder with parameters that a path names: itself, or a checkpoint, the newest of a folder or
/// of a run; none: empty.
std::filesystem::path folderOfWeights(const std::filesystem::path &path) {
  std::error_code code;
  for (const std::filesystem::path &folder :
       {path, runtime::newestCheckpoint(path, -1),
        runtime::newestCheckpoint(path / RunDirectory::kCheckpoints, -1)})
    if (!folder.empty() && std::filesystem::exists(folder / kParametersFile, code))
      return folder;
  return {};
}

} // namespace

GivenFiles hydra::givenFiles(const RunOptions &options, const runtime::Checkpoint *checkpoint) {
  GivenFiles files;
  if (!checkpoint) // which has them
    files.weights = options.weights;
  std::filesystem::path folder = checkpoint ? checkpoint->path() : "";
  std::error_code code; // whoever reads a file says what is wrong with it
  if (files.weights && std::filesystem::is_directory(*options.weights, code)) {
    folder = folderOfWeights(*options.weights);
    if (folder.empty())
      fail("--weights: {} has no {}, nor a checkpoint that has one (hydra-run --export writes such "
           "a file)",
           support::shownPath(*options.weights), kParametersFile);
    files.weights = (folder / kParametersFile).string();
  }
  if (!options.average)
    return files;
  if (folder.empty() || !std::filesystem::exists(folder / kStatesFile, code))
    fail("--average: {} is no checkpoint, which would have averages",
         support::shownPath(folder.empty() ? options.weights.value_or("") : folder.string()));
  files.averages = folder / kStatesFile;
  return files;
}
