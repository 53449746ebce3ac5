// Quantiles of the normal distribution.
#pragma once

#include <span>

namespace hydra::support {

/// The z with P(Z <= z) = p for a standard normal Z, 0 < p < 1, to about 1 part in 1e16.
/// M. J. Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988) 477-484.
double inverseNormalCdf(double p);

/// Each number becomes its inverseNormalCdf, with the same bits, several at a time.
void inverseNormalCdf(std::span<double> numbers);

} // namespace hydra::support
