// Safetensors files of variables, to which each rank of a run writes what it holds.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/ranks/Ranks.h"
#include "runtime/run/Executor.h"
#include "runtime/support/Error.h"
#include "runtime/support/OutputPath.h"
#include "runtime/support/Safetensors.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Values that are infinite or NaN, which no file of a run may hold.
class NotFinite : public support::Error {
public:
  using Error::Error;
};

/// A file that is to be written, and the variables in it.
struct TensorFile {
  support::OutputPath path;
  std::vector<const planfile::Variable *> variables;
  support::SafetensorsMetadata metadata;
};

/// The ranks that write together, or null: then rank 0 holds everything, and is alone here.
Ranks *writersOf(const planfile::Plan &plan, Ranks *ranks);

/// Does work of which each of the ranks has its part, and waits for all of them. What the lowest of
/// them met, all throw: Error or NotFinite. `ranks` may be null.
void together(Ranks *ranks, const std::function<void()> &work);

/// Writes files, which appear complete or not at all, and returns the hashes of their tensors
/// (BlockHash), by name, on rank 0. Bytes do not depend on ranks. With `ranks` (writersOf) all of
/// them call it, and must see the folders: rank 0 creates the files, and each writes the elements
/// that no rank before it holds. Throws Error, on all ranks, when a file cannot be written,
/// NotFinite when a value is not finite; messages call all of it `what`.
std::map<std::string, std::string> writeTensorFiles(const std::filesystem::path &what,
                                                    const std::vector<TensorFile> &files,
                                                    const PlanFile &file, Executor &executor,
                                                    Ranks *ranks);

} // namespace hydra::runtime
