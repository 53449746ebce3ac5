// Numbers that runs count or draw for every step or micro-batch: arguments of programs, i32 of rank
// 0, by whose names plans say how.
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include "mlir/IR/Types.h"

namespace hydra {

inline constexpr llvm::StringLiteral kStepNumber = "step"; ///< from 1
/// The words of the key that a step draws by.
inline constexpr llvm::StringLiteral kDrawLow = "draw_low", kDrawHigh = "draw_high";
inline constexpr llvm::StringLiteral kMicroBatch =
    "micro_batch"; ///< its number in the step, from 0

/// Whether an argument of that name and element type is one of them. Models have none: passes add
/// them.
inline bool isCountedNumber(llvm::StringRef name, mlir::Type element) {
  return element.isInteger(32) &&
         llvm::is_contained({kStepNumber, kDrawLow, kDrawHigh, kMicroBatch}, name);
}

} // namespace hydra
