// From a name to where it is declared and used, and the outline of a document.
#pragma once

#include "tools/hydra-lsp/Names.h"

namespace hydra::lsp {

/// Where the name at a byte is declared; several where it may mean each of them.
std::vector<Range> declarationsAt(const Names &names, size_t offset);

/// Where the name at a byte is used, in the order of the text.
std::vector<Range> referencesAt(const Names &names, size_t offset, bool withDeclaration);

/// What the model declares, inside of what.
std::vector<llvm::lsp::DocumentSymbol> outlineOf(const Names &names);

} // namespace hydra::lsp
