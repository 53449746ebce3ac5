// The tokens of a model's text.
#pragma once

#include "tools/hydra-lsp/Names.h"

namespace hydra::lsp {

/// Cuts any text into tokens, as MLIR's lexer would where it is a model.
std::vector<Token> tokensOf(llvm::StringRef text);

} // namespace hydra::lsp
