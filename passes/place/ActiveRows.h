// How hydra-skip-rows tells hydra-to-plan what it found.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace hydra {

/// On a `hydra.compact`: its number in the model.
inline constexpr llvm::StringLiteral kCompactAttr = "hydra.compaction";
/// On an operation that works on gathered rows: the number of the compaction, and
/// that of the run of neighbouring operations for which one decision is made.
inline constexpr llvm::StringLiteral kActiveRowsAttr = "hydra.active_rows";
/// On a matmul over the rows of two concatenations: of each pair of parts the number of the
/// compaction behind whose last row it ends, or -1 for one of which all rows count.
inline constexpr llvm::StringLiteral kActivePartsAttr = "hydra.active_parts";

} // namespace hydra
