// The text of a row-wise group for the slice that a block of a loop's kernel works on, or for the
// rows that every block of a matmul computes for itself.
#pragma once

#include "compiler/codegen/rows/RecordGroup.h"

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace hydra::cuda {

/// A slice of a tensor of the group, wherever it lies.
struct SliceTensor {
  std::string pointer; ///< to its first element
  mlir::MemRefType type;
  llvm::SmallVector<int64_t> strides; ///< elements
  int64_t alignment;                  ///< bytes, of every row
  bool byFirstBlock = false;          ///< stored by the first block alone
};

/// What is added to an address for `index`, a C++ expression, along dimensions of these sizes and
/// strides.
std::string offsetText(const std::string &index, llvm::ArrayRef<int64_t> sizes,
                       llvm::ArrayRef<int64_t> strides);

/// A loop over the rows of the slice, of which `row` and `slice` are the variables; `sliced`
/// leading dimensions of the group's rows tell slices apart. `inputs` and `results` are in the
/// group's order. A thread has a whole row (`rowOfThread`), or lanes side by side share it.
std::string groupText(const RowProgram &program, int64_t sliced, bool rowOfThread,
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

/// Whether there is one: of inputs there are numbers of the domain, and those that all share.
bool canBeNumberText(const RowProgram &program);

/// `inputs` are expressions, those of forms that all numbers share known where `shared` stands;
/// `results` the variables that are given what is stored. Divisions and roots of what is done for
/// each are those of templates/update_hopper.cuh, which are within a unit in the last place.
NumberText numberGroupText(const RowProgram &program, llvm::ArrayRef<std::string> inputs,
                           llvm::ArrayRef<std::string> results);

/// The 256 threads (`kTeamThreads`) that compute all rows of a group in each block.
constexpr int64_t kTeamThreads = 256;

/// Whether their registers hold the rows: those of a group that reduces are read once.
bool canBeTeamText(const RowProgram &program);

/// All rows of a group, by the first `kTeamThreads` threads of a block; teams of warps share rows.
/// Groups neither gather, rotate nor sum over rows.
std::string teamGroupText(const RowProgram &program, llvm::ArrayRef<SliceTensor> inputs,
                          llvm::ArrayRef<SliceTensor> results);

/// The C++ type in which numbers of that type are computed, and an element in memory as one.
llvm::StringRef numberType(RowType type);
std::string loadedText(RowType type, const std::string &element);

} // namespace hydra::cuda
