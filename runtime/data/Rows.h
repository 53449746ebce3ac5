// Rows of batches: windows of a stream of tokens, or whole documents side by side.
#pragma once

#include "runtime/data/TokenFiles.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hydra::data {

/// One batch, or the part of it that is read: dense [B / parts, S] each.
struct BatchRows {
  std::vector<int32_t> tokens, labels;
};

/// The rows of one length that some files hold. Any number of threads at a time.
class RowSet {
public:
  virtual ~RowSet() = default;
  virtual uint64_t count() const = 0;
  /// Row `index` into row `row` of `batch`. Throws Error as TokenFiles::read does.
  virtual void read(uint64_t index, size_t row, BatchRows &batch) const = 0;
  /// Which part of all places holds tokens of documents.
  virtual double filled() const { return 1; }
};

/// Which tokens of files: those that are trained on, the last tenth, which is held out, or all.
enum class Split { training, heldOut, all };

/// The windows of a stream of tokens: window i holds tokens [begin + i * length, ...] and, one
/// ahead, their labels. The last tenth of the tokens is held out.
struct Windows {
  uint64_t begin = 0;  // first token
  uint64_t count = 0;  // windows
  uint64_t length = 0; // S; a window takes S + 1 tokens, and shares one with the next

  /// Throws Error when that part of the files has too few tokens for `atLeast` windows.
  static Windows of(const TokenFiles &files, Split split, uint64_t length, uint64_t atLeast);
};

/// Window `index` of `windows` into row `row` of `batch`.
void readWindow(const TokenFiles &files, const Windows &windows, uint64_t index, size_t row,
                BatchRows &batch);

/// The windows of a part. `files` must outlive them. Throws Error as Windows does.
std::unique_ptr<RowSet> windowsOf(const TokenFiles &files, Split split, uint64_t length,
                                  uint64_t atLeast);

/// Rows of whole documents, as `packed` models read them: each ends with the token of shards for
/// that, and what is left of a row is filled with these, whose labels are -100. Documents of more
/// than `length` tokens are cut into rows of that, and a rest. The last tenth, up to the end of a
/// document, is held out. Throws Error where files are no shards with ends, or have too few
/// documents. Which documents share a row depends on their order and sizes alone; 32 bytes each.
std::unique_ptr<RowSet> packedRowsOf(const TokenFiles &files, Split split, uint64_t length,
                                     uint64_t atLeast);

} // namespace hydra::data
