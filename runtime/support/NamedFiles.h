// The files that the flags of one call name.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace hydra {

/// A file and the flag that names it, as messages say it (`-o`, `the model`).
struct NamedFile {
  std::string flag, path;
};

/// Throws support::Error when what is written would take the place of what is read, or of another
/// output: the same path, or the same file by another one. Empty paths and `-` name no file.
void checkOutputs(llvm::ArrayRef<NamedFile> inputs, llvm::ArrayRef<NamedFile> outputs);

/// Whether two paths lead, or would lead, to one file.
bool isSameFile(const std::string &a, const std::string &b);

} // namespace hydra
