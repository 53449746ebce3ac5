// Whether the tensors of a checkpoint are those that were saved.
#pragma once

#include "runtime/ranks/Ranks.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace hydra::runtime {

/// What a manifest says of the tensors of its checkpoint.
struct TensorHashes {
  std::map<std::string, std::string> byTensor;
  bool ofWhole = false; ///< in an older format: of tensors as a whole, not by blocks

  /// Throws Error where the tensor of the file at `path` (as messages quote it) has another hash,
  /// or none.
  void compare(std::string_view path, std::string_view tensor, const std::string &hash) const;
};

/// As manifests write it.
std::string hashText(uint64_t hash);

/// For whoever reads a file without the rest of its checkpoint. Throws Error unless its tensors
/// whose names end in `ending` are as the manifest beside it says; a file that is none of a
/// checkpoint's has no hashes. Several ranks share out the tensors, make the call together, and
/// throw together. Where it takes long, it may say so.
void checkHashes(const std::filesystem::path &file, std::string_view ending = {},
                 Ranks *ranks = nullptr, bool speaks = false);

} // namespace hydra::runtime
