// What is in it goes with it.
#include "runtime/support/TemporaryFolder.h"

#include <utility>

namespace hydra::support {

TemporaryFolder::TemporaryFolder(OutputPath path)
    : folder(std::move(path)), aside(folder.place.string() + ".gone") {
  removal.emplace(folder.place.c_str(), aside.c_str());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (removal)
    std::filesystem::remove_all(folder.place, ignored);
}

std::error_code TemporaryFolder::rename() {
  std::error_code code;
  std::filesystem::rename(folder.place, folder.shown, code);
  if (!code)
    removal.reset();
  return code;
}

} // namespace hydra::support
