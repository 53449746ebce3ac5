// What the dialect says of its operations: the summaries and descriptions of their declarations,
// which are part of the program.
#pragma once

#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace hydra::lsp {

struct OperationDoc {
  std::string name;        ///< without `hydra.`
  std::string summary;     ///< `y = x wᵀ + b`
  std::string description; ///< Markdown
  std::vector<std::string> attributes, results;
  bool isOptimizer = false; ///< whether groups name it
};

/// Of every operation, by name.
const llvm::StringMap<OperationDoc> &operationDocs();
/// Null if there is no such operation.
const OperationDoc *operationDoc(llvm::StringRef name);

/// The operation that an operator of arithmetic is, between or in front of values; empty: none.
llvm::StringRef operatorName(llvm::StringRef mark);

} // namespace hydra::lsp
