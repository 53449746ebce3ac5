// A record that is written line by line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace hydra::runtime {

/// Lines of a file, each whole and at once. What cannot be written (a full disk) costs a line on
/// standard error and ends the file, not the run.
class LineFile {
public:
  LineFile() = default;
  /// Opens the file, to append to its whole lines or anew. `what` it is, for messages: `the log`.
  /// With one of `firsts` every line begins: a part of one behind the last whole line, which a
  /// machine that failed has left, is cut off. Throws Error when the file cannot be opened, or ends
  /// in a part of any other line, which is somebody's text.
  LineFile(std::filesystem::path path, std::string what, std::string_view firsts, bool append);
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
