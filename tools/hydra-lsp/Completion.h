// What can stand at a place of a model.
#pragma once

#include "tools/hydra-lsp/Names.h"

namespace hydra::lsp {

/// The words for the place of the cursor, a byte, whatever of them is written there already:
/// operations, values, parameters, symbols, attributes, presets.
std::vector<llvm::lsp::CompletionItem> completionsAt(const Names &names, size_t offset);

} // namespace hydra::lsp
