// The files that the flags of one call name.
#include "runtime/support/NamedFiles.h"

#include "runtime/support/Error.h"

#include <filesystem>

namespace fs = std::filesystem;

namespace hydra::support {

namespace {

/// Whether two paths lead, or would lead, to one file.
bool isSameFile(const std::string &a, const std::string &b) {
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error)
    return true;
  auto resolved = [](const std::string &path) {
    std::error_code problem; // what cannot be looked up will not be opened either
    return fs::weakly_canonical(fs::absolute(path, problem), problem);
  };
  const fs::path first = resolved(a);
  return !first.empty() && first == resolved(b);
}

bool isFile(const NamedFile &file) {
  std::error_code error; // what cannot be looked up is no device
  return !file.path.empty() && file.path != "-" && !fs::is_other(fs::status(file.path, error));
}

} // namespace

void checkOutputs(const std::vector<NamedFile> &inputs, const std::vector<NamedFile> &outputs) {
  std::vector<NamedFile> taken = inputs;
  for (const NamedFile &output : outputs) {
    for (const NamedFile &other : taken)
      if (isFile(output) && isFile(other) && isSameFile(output.path, other.path))
        fail("{} is {}, the same file as {} ({}); expected another one", output.flag, output.path,
             other.flag, other.path);
    taken.push_back(output);
  }
}

} // namespace hydra::support
