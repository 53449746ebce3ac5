// Directories are told by their names alone.
#include "runtime/run/CheckpointNames.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <charconv>
#include <string_view>
#include <system_error>

namespace fs = std::filesystem;

namespace hydra::runtime {

std::string checkpointName(int64_t step) { return fmt::format("step-{:08}", step); }

std::optional<int64_t> checkpointStep(const fs::path &path) {
  const std::string name = path.filename();
  constexpr std::string_view prefix = "step-";
  int64_t step = 0;
  if (!name.starts_with(prefix))
    return std::nullopt;
  const char *end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && rest == end && checkpointName(step) == name ? std::optional(step)
                                                                             : std::nullopt;
}

std::map<int64_t, fs::path> checkpointsIn(const fs::path &folder) {
  std::map<int64_t, fs::path> found;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
    if (const auto step = checkpointStep(it->path()))
      found[*step] = it->path();
  return found;
}

fs::path newestCheckpoint(const fs::path &folder, int64_t step) {
  const std::map<int64_t, fs::path> present = checkpointsIn(folder);
  return present.empty() || present.rbegin()->first <= step ? fs::path() : present.rbegin()->second;
}

void checkNoLaterCheckpoint(const fs::path &folder, int64_t step) {
  if (const fs::path newest = newestCheckpoint(folder, step); !newest.empty())
    support::fail("{} is there, but this run begins at step {}; continue with --resume auto, or "
                  "choose another folder for --save",
                  support::shownPath(newest), step);
}

std::string olderCheckpointText(const fs::path &checkpoint) {
  const std::optional<int64_t> step = checkpointStep(checkpoint);
  if (!step)
    return "";
  const std::map<int64_t, fs::path> present = checkpointsIn(checkpoint.parent_path());
  const auto next = present.lower_bound(*step);
  if (next == present.begin())
    return "";
  return fmt::format("; remove {} to go on from {}", support::shownPath(checkpoint.filename()),
                     support::shownPath(std::prev(next)->second));
}

} // namespace hydra::runtime
