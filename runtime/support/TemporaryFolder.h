// A folder that is not complete yet.
#pragma once

#include "runtime/support/OutputPath.h"
#include "runtime/support/Temporaries.h"

#include <optional>
#include <system_error>

namespace hydra::support {

/// A folder of files, and of no folders, that is removed when such an object ends, or a signal ends
/// the process, unless it has got its name.
class TemporaryFolder {
public:
  /// The folder is there, and shown as what it will become.
  explicit TemporaryFolder(OutputPath folder);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  const OutputPath &path() const { return folder; }
  /// To be called before it gets its name in another way than by rename(): from now on no signal
  /// removes it. What is left under the old name goes with the object.
  void release();
  /// Gives it the name that it is shown as.
  std::error_code rename();

private:
  OutputPath folder;
  std::optional<Temporary> removal; // until it is released
  bool renamed = false;
};

} // namespace hydra::support
