// How many gradients have which magnitude.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// `[kExponents]` f32: how many elements of all these tensors have which exponent of two, as
/// runtime/support/GradHistogram.h says. `inverse`, an f32 number that multiplies them first, may
/// be null. `padding` zeros among them are no gradients and do not count. Counts are exact up to
/// 2^24, larger ones rounded as f32 is. What is no number counts with zeros. `apart`, without
/// `inverse`: each tensor is counted right behind where it is made, so that it need not wait in
/// memory for the others.
mlir::Value countExponents(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange gradients,
                           mlir::Value inverse, int64_t padding, bool apart);

} // namespace hydra
