// Names of files and folders that are not complete yet, which no end of the process by a signal
// leaves behind.
#pragma once

namespace hydra::support {

/// While alive, a SIGINT, SIGTERM or SIGHUP that ends the process removes the file of that name, or
/// the folder and the files in it, first. Handlers of others stay: who handles a signal and then
/// ends by it calls endBySignal. Of those that exist at a time the first kMost are removed.
class Temporary {
public:
  static constexpr unsigned kMost = 256;

  /// Both texts stay where they are. A folder has a path `aside`, in the same folder: it is called
  /// so before it is emptied, and never where it has got its name meanwhile.
  explicit Temporary(const char *path, const char *aside = nullptr);
  ~Temporary();
  Temporary(const Temporary &) = delete;
  Temporary &operator=(const Temporary &) = delete;

private:
  unsigned slot; // kMost: none was free
};

/// Removes all temporary files and folders of this process, and ends it by the default action of
/// the signal. For handlers of signals, too.
[[noreturn]] void endBySignal(int number);

} // namespace hydra::support
