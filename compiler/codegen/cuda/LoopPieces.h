// The text of copies of slices, between the places that they have in a loop's kernel.
#pragma once

#include "mlir/IR/Value.h"

#include <string>

namespace hydra::cuda {

/// Elements side by side that slices of a value are moved in where the plan has put it: 16 bytes,
/// or one.
int64_t outsideWidth(mlir::Value value);

/// A slice of a value in pieces of elements side by side, and calls of templates/loop.cuh that move
/// it. Their addresses are C++ expressions.
class LoopPieces {
public:
  /// The slice is what the first `sliced` dimensions leave, a piece has `wide` elements; `to` and
  /// `from`: strides of all dimensions, in elements.
  LoopPieces(mlir::Value value, unsigned sliced, int64_t wide, llvm::ArrayRef<int64_t> to,
             llvm::ArrayRef<int64_t> from);

  int64_t size() const { return count; }
  /// Whether all lie side by side on both sides.
  bool isDense() const { return row == count; }
  /// Whether rows do that are long enough, and few enough for one warp to ask for: the copy engine
  /// takes a row in 12 cycles, for which the warp waits.
  bool isOfRows() const { return row >= kLeastRow && count / row <= kMostRows; }

  /// In how many turns the threads of a block move the slice, a piece each.
  int64_t turns() const;

  std::string copy(const std::string &to, const std::string &from) const;
  /// Begins to copy pieces of 16 bytes.
  std::string fetchPieces(const std::string &to, const std::string &from) const;
  /// The same for the turns from `begin` to `end` alone.
  std::string copyTurns(const std::string &to, const std::string &from, int64_t begin,
                        int64_t end) const;
  std::string fetchTurns(const std::string &to, const std::string &from, int64_t begin,
                         int64_t end) const;
  /// Begins to copy by one warp: row by row, or all at once what is dense.
  std::string fetchRows(const std::string &to, const std::string &from, int64_t warp) const;
  /// Asks for the lines of pieces of 16 bytes.
  std::string prefetch(const std::string &from) const;

private:
  static constexpr int64_t kLeastRow = 16, kMostRows = 16;
  std::string type, dims;     ///< as the templates have them
  int64_t count = 1, row = 1; ///< pieces: in all, and side by side on both sides
};

} // namespace hydra::cuda
