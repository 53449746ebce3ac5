// How checkpoints in a folder are called, and which there are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace hydra::runtime {

/// The files of a checkpoint.
inline constexpr const char *kParametersFile = "model.safetensors";
inline constexpr const char *kStatesFile = "optimizer.safetensors";
inline constexpr const char *kManifest = "checkpoint.json";

/// `step-00000500`.
std::string checkpointName(int64_t step);

/// The step of a checkpoint's name; nothing for any other name.
std::optional<int64_t> checkpointStep(const std::filesystem::path &path);

/// The checkpoints of a folder by their steps; none if it cannot be read.
std::map<int64_t, std::filesystem::path> checkpointsIn(const std::filesystem::path &folder);

/// The newest of a step after `step`; an empty path if there is none.
std::filesystem::path newestCheckpoint(const std::filesystem::path &folder, int64_t step);

/// Throws Error where a folder has checkpoints of steps after `step`, at which a run begins that is
/// to save into it: two runs would mix.
void checkNoLaterCheckpoint(const std::filesystem::path &folder, int64_t step);

/// What to do where a checkpoint is damaged: `; remove it to go on from run/step-00000400`, or
/// nothing where no older one lies beside it.
std::string olderCheckpointText(const std::filesystem::path &checkpoint);

} // namespace hydra::runtime
