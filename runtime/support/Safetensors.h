// The safetensors container: a reader that believes nothing, and a writer that streams.
//
// Layout: u64 header length, JSON header {"name": {"dtype", "shape", "data_offsets"}, ...,
// "__metadata__": {string: string}}, then the tensors back to back, little-endian, row-major.
#pragma once

#include "runtime/support/AtomicFile.h"
#include "runtime/support/DType.h"
#include "runtime/support/InputFile.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::support {

struct TensorInfo {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape; // empty = rank 0, one element
};

struct TensorView : TensorInfo {
  std::span<const std::byte> bytes; // row-major; aligned to nothing
};

/// Headers above this many bytes are refused, as the reference implementation does.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Bytes of the tensor; nothing when a dimension is negative, or the product of the non-zero ones
/// does not fit 64 bits.
std::optional<uint64_t> byteSize(const TensorInfo &tensor);

/// `[2, 3]`, as error messages print a shape.
std::string shapeText(std::span<const int64_t> shape);

using SafetensorsMetadata = std::map<std::string, std::string, std::less<>>;

/// The tensors of one file or buffer, checked completely when it is opened. Every Error names the
/// file and, where there is one, the tensor.
class Safetensors {
public:
  /// Reads the whole file. The views live as long as the result or a copy of it.
  static Safetensors open(const std::filesystem::path &path);

  /// The same on bytes in memory, which must outlive the result; `origin` stands for the file's
  /// name in errors.
  static Safetensors parse(std::span<const std::byte> bytes, std::string origin);

  /// In the order of the header.
  const std::vector<TensorView> &tensors() const { return list; }
  const SafetensorsMetadata &metadata() const { return strings; }

  /// Null when there is no tensor of that name.
  const TensorView *find(std::string_view name) const;
  /// Throws Error when there is no tensor of that name.
  const TensorView &get(std::string_view name) const;

private:
  std::string origin;
  std::vector<TensorView> list;
  std::map<std::string, size_t, std::less<>> index; // name -> position in list
  SafetensorsMetadata strings;
  std::shared_ptr<const std::vector<std::byte>> storage; // of a file; null for bytes in memory
};

/// A tensor and where it lies behind the header: bytes [begin, end).
struct TensorPlace : TensorInfo {
  uint64_t begin = 0, end = 0;
};

/// A file whose tensors are read one at a time, so that all of them never have to be in memory. The
/// header is checked completely when it is opened. Every Error names the file and, where there is
/// one, the tensor.
class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::filesystem::path &path);

  /// As messages quote it.
  const std::string &name() const { return file.name(); }
  /// In the order of the header.
  const std::vector<TensorPlace> &tensors() const { return list; }
  const SafetensorsMetadata &metadata() const { return strings; }
  /// Null when there is no tensor of that name.
  const TensorPlace *find(std::string_view name) const;

  /// Row-major. Throws Error when the file has become shorter, or the system cannot read it.
  std::vector<std::byte> read(const TensorPlace &tensor) const;
  /// Bytes [begin, begin + out.size()) of it, which it must have. Any number of threads at a time.
  void read(const TensorPlace &tensor, uint64_t begin, std::span<std::byte> out) const;

private:
  InputFile file;
  uint64_t data = 0; // where it begins, behind the header
  std::vector<TensorPlace> list;
  std::map<std::string, size_t, std::less<>> index; // name -> position in list
  SafetensorsMetadata strings;
};

/// The bytes of a file that say what it holds, and where each tensor has its own. They depend on
/// the arguments only; the data section starts at a multiple of 64.
struct SafetensorsLayout {
  /// `shownPath` stands for the file in errors. Throws Error on a name given twice, `__metadata__`
  /// as a name, names or metadata that are not UTF-8, negative or overflowing sizes, a header above
  /// 100 MB.
  SafetensorsLayout(const std::vector<TensorInfo> &tensors, const SafetensorsMetadata &metadata,
                    const std::string &shownPath);

  std::string header;               ///< with its length before it
  std::vector<TensorPlace> tensors; ///< bytes [begin, end) of the file
  uint64_t fileSize;
};

/// Writes a file tensor by tensor, so that it never has to be in memory as a whole. The file
/// appears at commit(), otherwise nothing remains (see AtomicFile).
class SafetensorsWriter {
public:
  /// Throws Error as SafetensorsLayout does, and on an unwritable path.
  SafetensorsWriter(const OutputPath &path, std::vector<TensorInfo> tensors,
                    const SafetensorsMetadata &metadata = {});

  /// The next bytes of tensor `name`: all of them, or a piece. Tensors come in the order given
  /// (empty ones may be skipped); anything else is an Error.
  void append(std::string_view name, std::span<const std::byte> bytes);

  /// Throws Error when bytes are missing.
  void commit();

private:
  void skipFinished();

  std::string shownPath;
  std::vector<TensorInfo> list;
  std::vector<uint64_t> remaining; // bytes still to come, per tensor
  size_t current = 0;              // first tensor with bytes to come
  std::optional<AtomicFile> file;
};

/// Writes tensors that are in memory, in the order given.
void writeSafetensors(const std::filesystem::path &path, std::span<const TensorView> tensors,
                      const SafetensorsMetadata &metadata = {});

} // namespace hydra::support
