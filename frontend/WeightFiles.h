// The safetensors files of a directory as Hugging Face has them: one, or several with an index.
#pragma once

#include "runtime/support/Safetensors.h"

#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace hydra::frontend {

/// A tensor and the file that has it.
struct StoredTensor {
  const support::SafetensorsFile *file = nullptr;
  const support::TensorPlace *place = nullptr;

  /// `FILE: tensor 'NAME'`, for messages.
  std::string where() const;
};

/// All tensors; headers are read and checked, values are read when they are asked for.
class WeightFiles {
public:
  /// Reads `model.safetensors`, or the shards that `model.safetensors.index.json` names; or one
  /// file. Throws Error for a directory without either, files of other kinds, shards outside of it,
  /// and where index and shards disagree.
  explicit WeightFiles(const std::filesystem::path &directory);
  WeightFiles(const WeightFiles &) = delete;
  WeightFiles &operator=(const WeightFiles &) = delete;

  const std::map<std::string, StoredTensor, std::less<>> &tensors() const { return byName; }
  /// Null without a tensor of that name.
  const StoredTensor *find(std::string_view name) const;
  /// All that were read, the index too.
  const std::vector<std::filesystem::path> &paths() const { return read; }
  /// The directory, as messages quote it.
  const std::string &name() const { return shownDirectory; }

private:
  void addAll(const std::filesystem::path &path);
  void readIndex(const std::filesystem::path &directory, const std::filesystem::path &index);

  std::string shownDirectory;
  std::vector<std::filesystem::path> read;
  std::deque<support::SafetensorsFile> files;
  std::map<std::string, StoredTensor, std::less<>> byName;
};

/// What WeightFiles would read of a directory, as far as it is there: nothing is checked.
std::vector<std::filesystem::path> weightPaths(const std::filesystem::path &directory);

} // namespace hydra::frontend
