// Sizes of the parts into which kernels of a GPU cut their work, where a target or a flag says
// them.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace hydra {

// Kernels with sizes that can be said. All but the last are templates of compiler/codegen/cuda.
inline constexpr llvm::StringLiteral kAttentionForward = "attention_forward",
                                     kAttentionQueryGradients = "attention_query_gradients",
                                     kAttentionKeyGradients = "attention_key_gradients",
                                     kFewRowsMatmul = "few_rows_matmul",
                                     kRowKernels = "row_kernels"; ///< all that are generated

/// `attention_forward:width=64,rows=192,stages=4`: sizes of a kernel, for all of its launches or
/// for those with heads of one width. Which forms a kernel really has, and what a block has the
/// memory for, is asked where it is made.
struct KernelTiles {
  std::string kernel;
  std::map<std::string, int64_t> sizes; ///< by name, such as rows
  int64_t width = 0;                    ///< of heads; 0: all
  bool required = false;                ///< a plan without such a kernel is a mistake

  /// nullopt, with what is wrong in `problem`, for an unknown kernel or name, for a number that no
  /// form of it has, and for a text of another form.
  static std::optional<KernelTiles> parse(llvm::StringRef text, std::string &problem);
  /// What `parse` takes.
  std::string text() const;
};

} // namespace hydra
