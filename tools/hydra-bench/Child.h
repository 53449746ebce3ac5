// Programs that run beside this one: what they print, and how they end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hydra::bench {

struct ChildResult {
  int status = 0;    ///< of the program; 128 + the signal that ended it
  bool late = false; ///< it was ended because its time was up
  std::string output, errors;

  /// Its last line of errors, without the name of the program in front; how it ended, where it said
  /// nothing.
  std::string reason() const;
};

/// Runs the program to its end, or for so many seconds (0: any). Throws Error when it cannot be
/// started.
ChildResult runChild(const std::filesystem::path &program,
                     const std::vector<std::string> &arguments, double seconds);

/// From now on SIGINT and SIGTERM end the children alone.
void watchSignals();
/// Whether such a signal has come.
bool wasInterrupted();

/// A folder for temporary files, which is removed with all in it.
class ScratchFolder {
public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;

  const std::filesystem::path path;
};

} // namespace hydra::bench
