// Scales that numbers are divided by before they are rounded to 8 bits.
#pragma once

#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/RowMath.h"

#include <cmath>

namespace hydra {

/// Far from the ends of the normal range of f32, also inverted.
inline constexpr double kLeastScale = 0x1p-100;

inline double largestOf(mlir::Type format) { return support::largestNumber(*formatOf(format)); }

/// The smallest power of two by which `amax` divided is no more than the largest number of the
/// format, and at least kLeastScale. Of infinity it is infinite, of NaN NaN.
inline double quantizationScale(double amax, mlir::Type format) {
  double inverse = largestOf(format) / amax; // of 0, infinity and NaN as it is
  if (std::isfinite(inverse) && inverse != 0.0)
    inverse = std::ldexp(1.0, std::ilogb(inverse));
  const double scale = 1.0 / inverse;
  return scale < kLeastScale ? kLeastScale : scale;
}
inline RowTerm quantizationScale(RowTerm amax, mlir::Type format) {
  return max(1.0 / apply(RowUnary::PowerOfTwo, largestOf(format) / amax), kLeastScale);
}

} // namespace hydra
