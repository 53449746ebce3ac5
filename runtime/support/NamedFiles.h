// The files that the flags of one call name.
#pragma once

#include <string>
#include <vector>

namespace hydra::support {

/// A file and the flag that names it, as messages say it (`-o`, `the model`).
struct NamedFile {
  std::string flag, path;
};

/// Throws Error when what is written would take the place of what is read, or of another output:
/// the same path, or the same file by another one. Empty paths, `-`, devices and pipes hold nothing
/// that could be lost.
void checkOutputs(const std::vector<NamedFile> &inputs, const std::vector<NamedFile> &outputs);

} // namespace hydra::support
