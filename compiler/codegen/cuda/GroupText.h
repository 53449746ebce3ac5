// The text of a row-wise group for the slice that a block of a loop's kernel works on, or for the
// rows that blocks of a matmul, or of attention over slots, compute for themselves.
#pragma once

#include "compiler/codegen/cuda/NodeText.h"
#include "compiler/codegen/rows/RecordGroup.h"

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace hydra::cuda {

/// A slice of a tensor of the group, wherever it lies.
struct SliceTensor {
  std::string pointer; ///< to its first element
  mlir::MemRefType type;
  llvm::SmallVector<int64_t> strides; ///< elements
  int64_t alignment = 1;              ///< bytes, of every row
  bool byFirstBlock = false;          ///< stored by the first block alone
  bool ofBlock = false; ///< has the rows of the block alone, the first of `strides` apart
};

/// What is added to an address for `index`, a C++ expression, along dimensions of these sizes and
/// strides.
std::string offsetText(const std::string &index, llvm::ArrayRef<int64_t> sizes,
                       llvm::ArrayRef<int64_t> strides);

/// Who shares a row of a loop's group: a thread has it whole, or lanes side by side, of one warp or
/// of several, which then is a power of two.
struct RowSharers {
  bool thread = false;
  int64_t warps = 1;
  int64_t scratch = 0; ///< of several: where in shared memory each reduction has kReductionScratch
};

/// A loop over the rows of the slice, of which `row` and `slice` are the variables; `sliced`
/// leading dimensions of the group's rows tell slices apart. `inputs` and `results` are in the
/// group's order.
std::string groupText(const RowProgram &program, int64_t sliced, const RowSharers &sharers,
                      llvm::ArrayRef<SliceTensor> inputs, llvm::ArrayRef<SliceTensor> results);

/// The same where the only input is a matrix in registers, `held`, and the group works number by
/// number: every thread does its own.
std::string heldGroupText(const RowProgram &program, int64_t sliced, llvm::StringRef held,
                          llvm::ArrayRef<SliceTensor> results);

/// The same for the number `lane`, an `int64`, of a group that works number by number: `inputs` are
/// expressions, `results` the variables that are given what is stored.
std::string laneGroupText(const RowProgram &program, llvm::ArrayRef<std::string> inputs,
                          llvm::ArrayRef<std::string> results);

/// The text of a group that works number by number and never asks where, in two.
struct NumberText {
  std::string shared; ///< what is the same for all numbers
  std::string each;   ///< what is done for one
};

/// The node that a result is the largest number of, in each row.
std::optional<unsigned> largestOfRow(const RowProgram &program, const RowResult &result);

/// Whether there is one: of inputs there are numbers of the domain, and those that all share, and
/// what a row makes together is its largest number, which is a result and nothing else.
bool canBeNumberText(const RowProgram &program);

/// `inputs` are expressions, those of forms that all numbers share known where `shared` stands;
/// `results` the variables that are given what is stored, maybe not rounded yet, or what the
/// largest number of a row is the largest of. `divisions`: and roots, of what is done for each.
NumberText numberGroupText(const RowProgram &program, llvm::ArrayRef<std::string> inputs,
                           llvm::ArrayRef<std::string> results, Divisions divisions);

/// Threads of a block that compute rows of a group: whole warps, a power of two of them, which have
/// a barrier (bar.sync) for themselves.
struct Team {
  int64_t threads = 256, first = 0, barrier = 1;
};

/// Which rows of a group a block computes.
struct TeamRows {
  int64_t count;
  std::string row; ///< the number of its row `mine`, a C++ expression
};

/// All rows of a group, in each block.
TeamRows allRows(const RowProgram &program);

/// Whether the team's registers hold so many rows: those of a group that reduces are read once.
bool canBeTeamText(const RowProgram &program, int64_t rows, const Team &team = {});

/// Rows of a group by a team, of which all threads and no others come here; warps of it share rows.
/// Groups neither gather nor sum over rows, and rotate only by positions that they are given.
std::string teamGroupText(const RowProgram &program, const TeamRows &rows,
                          llvm::ArrayRef<SliceTensor> inputs, llvm::ArrayRef<SliceTensor> results,
                          const Team &team = {});

} // namespace hydra::cuda
