// Event files as TensorBoard reads them.
//
// A file is a sequence of records (length, its checksum, a message, its checksum); every message is
// an `Event` of TensorFlow's event.proto in protocol buffers' wire format. Scalars, histograms and
// texts need a handful of fields, so they are written here; no library for them is packaged.
#pragma once

#include "runtime/report/Histogram.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hydra::report {

/// Appends scalars, histograms and texts to a new file `events.out.tfevents.<time>.<host>` of a
/// directory.
class TensorBoardWriter {
public:
  /// Creates directory and file. Throws Error when it cannot.
  explicit TensorBoardWriter(const std::filesystem::path &directory);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter &) = delete;
  TensorBoardWriter &operator=(const TensorBoardWriter &) = delete;

  /// Each writes one record, whole. Throws Error when it cannot.
  void scalar(std::string_view tag, int64_t step, double value);
  void histogram(std::string_view tag, int64_t step, const Histogram &histogram);
  /// `text` is UTF-8; TensorBoard shows it as Markdown.
  void text(std::string_view tag, int64_t step, std::string_view text);

  const std::filesystem::path &file() const { return path; }

private:
  /// An event of that step whose summary has this one value.
  void write(int64_t step, std::string_view value);
  void writeRecord(const std::string &event);

  std::filesystem::path path;
  int descriptor = -1;
  bool begun = false; // the file says which version it is of
};

/// CRC-32C (Castagnoli) of bytes.
uint32_t crc32c(std::string_view bytes);

} // namespace hydra::report
