// The text of a document, and its places as editors and as MLIR count them.
#pragma once

#include "llvm/Support/LSP/Protocol.h"

#include <string>
#include <vector>

namespace hydra::lsp {

using llvm::lsp::Position;
using llvm::lsp::Range;

/// A text and where its lines begin. Positions of the protocol count lines from 0 and in them
/// UTF-16 code units; lines end with "\n", "\r\n" or "\r". MLIR counts from 1, bytes, and knows
/// "\n" alone.
class Text {
public:
  explicit Text(std::string content = "");

  llvm::StringRef str() const { return content; }

  /// The byte at a position; one behind the end of a line or of the text is that end.
  size_t offsetOf(Position position) const;
  /// The position of a byte; of one in what ends a line, the end of that.
  Position positionOf(size_t offset) const;
  Range rangeOf(size_t begin, size_t end) const { return {positionOf(begin), positionOf(end)}; }

  size_t offsetOfPlace(unsigned line, unsigned column) const;
  /// Line and column as MLIR has them.
  std::pair<unsigned, unsigned> placeOf(size_t offset) const;

  /// The line that a byte is on, without its end.
  llvm::StringRef lineAt(size_t offset) const;

  /// The text with a part of it replaced.
  std::string replaced(Range range, llvm::StringRef by) const;

private:
  /// How many UTF-16 code units are in front of a byte.
  size_t unitsUntil(size_t offset) const;
  /// Where a line of the protocol ends, in front of what ends it.
  size_t endOf(size_t line) const;

  std::string content;
  std::vector<size_t> lines;    ///< where those of the protocol begin
  std::vector<size_t> newlines; ///< where those of MLIR begin
  std::vector<size_t> units;    ///< in front of every kStride-th byte: lines may be of any length
};

} // namespace hydra::lsp
