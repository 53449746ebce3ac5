// The files that the flags of one call name.
#include "compiler/driver/NamedFiles.h"

#include "runtime/support/Error.h"

#include <filesystem>
#include <vector>

namespace hydra {

bool isSameFile(const std::string &a, const std::string &b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error) && !error)
    return true;
  auto resolved = [](const std::string &path) {
    std::error_code problem; // what cannot be looked up will not be opened either
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, problem), problem);
  };
  const std::filesystem::path first = resolved(a);
  return !first.empty() && first == resolved(b);
}

void checkOutputs(llvm::ArrayRef<NamedFile> inputs, llvm::ArrayRef<NamedFile> outputs) {
  auto isFile = [](const NamedFile &file) { return !file.path.empty() && file.path != "-"; };
  std::vector<NamedFile> taken(inputs.begin(), inputs.end());
  for (const NamedFile &output : outputs) {
    for (const NamedFile &other : taken)
      if (isFile(output) && isFile(other) && isSameFile(output.path, other.path))
        support::fail("{} is {}, the same file as {} ({}); expected another one", output.flag,
                      output.path, other.flag, other.path);
    taken.push_back(output);
  }
}

} // namespace hydra
