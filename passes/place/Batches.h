// What steps that become one have in common.
#pragma once

#include "dialects/plan/Plan.h"

#include <string>

namespace hydra {

/// Where two parts of a model are: `layers.*.attn` of `layers.0.attn.wq` and `layers.1.attn.wk`.
std::string commonPath(llvm::StringRef a, llvm::StringRef b);

/// Whether two values have bytes in common.
bool overlap(mlir::Value a, mlir::Value b);

/// Whether one of two steps, or of what loops and switches hold, writes what the other uses.
bool conflict(mlir::Operation *a, mlir::Operation *b);

/// Whether a step is a part of the one right behind it (hydra-fuse-operands): neither goes anywhere
/// without the other.
bool isPartOfNext(mlir::Operation *step);

/// Moves what names a value's bytes (buffers and views) before an operation of the same list, if it
/// stands behind.
void moveBefore(mlir::Value value, mlir::Operation *at);

} // namespace hydra
