// What is in it goes with it.
#include "runtime/support/TemporaryFolder.h"

#include <utility>

namespace hydra::support {

TemporaryFolder::TemporaryFolder(OutputPath path) : folder(std::move(path)) {
  removal.emplace(folder.place.c_str(), Temporary::Kind::folder);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!renamed)
    std::filesystem::remove_all(folder.place, ignored);
}

void TemporaryFolder::release() { removal.reset(); }

std::error_code TemporaryFolder::rename() {
  release(); // a handler on another thread would go on removing files under the new name
  std::error_code code;
  std::filesystem::rename(folder.place, folder.shown, code);
  renamed = !code;
  return code;
}

} // namespace hydra::support
