// What an editor shows for the word under the pointer.
#pragma once

#include "tools/hydra-lsp/Names.h"

#include <optional>

namespace hydra::lsp {

class Semantics;

struct HoverText {
  std::string markdown;
  Range range;
};

/// What is known at a byte of the text; nothing at white space and marks without meaning.
/// `semantics` is null where the model is not bound: then the text alone is known.
std::optional<HoverText> hoverAt(const Names &names, size_t offset, Semantics *semantics);

} // namespace hydra::lsp
