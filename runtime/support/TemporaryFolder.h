// A folder that is not complete yet.
#pragma once

#include "runtime/support/OutputPath.h"
#include "runtime/support/Temporaries.h"

#include <optional>
#include <string>
#include <system_error>

namespace hydra::support {

/// A folder of files, and of no folders, that is removed when such an object ends, or a signal ends
/// the process, unless it has got its name.
class TemporaryFolder {
public:
  /// The folder is shown as what it will become. It need not be there yet; nobody else makes it.
  explicit TemporaryFolder(OutputPath folder);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const OutputPath &path() const { return folder; }
  /// Gives it the name that it is shown as.
  std::error_code rename();

private:
  OutputPath folder;
  std::string aside;
  std::optional<Temporary> removal; // until it has its name
};

} // namespace hydra::support
