// A record that is written line by line.
#pragma once

#include <filesystem>
#include <string>

namespace hydra::runtime {

/// Lines of a file, each whole and at once. What cannot be written (a full disk) costs a line on
/// standard error and ends the file, not the run.
class LineFile {
public:
  LineFile() = default;
  /// Opens the file, to append to its whole lines or anew. `what` it is, for messages: `the log`.
  /// Throws Error when it cannot.
  LineFile(std::filesystem::path path, std::string what, bool append);
  ~LineFile();
  LineFile(LineFile &&other) noexcept;
  LineFile &operator=(LineFile &&other) noexcept;

  /// With its newline. Nothing happens without a file.
  void write(const std::string &line);
  bool isOpen() const { return descriptor >= 0; }
  /// Whether it had no byte when it was opened.
  bool wasEmpty() const { return empty; }

private:
  void close();

  std::filesystem::path path;
  std::string what;
  int descriptor = -1; // -1: none
  bool empty = true;
};

} // namespace hydra::runtime
