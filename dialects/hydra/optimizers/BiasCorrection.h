// What running means that begin at 0 are divided by.
#pragma once

#include "dialects/hydra/RowMath.h"

#include <cmath>

namespace hydra {

/// 1 - beta^t. Near t = 0 the difference of 1 and the power would lose most digits of f32; the form
/// 1 - e^x = -2 tanh(x/2) / (1 - tanh(x/2)) with x = t ln beta keeps them.
inline RowTerm biasCorrection(double beta, RowTerm t) {
  if (beta == 0.0)
    return t.constant(1.0);
  RowTerm h = tanh(t * (0.5 * std::log(beta)));
  return h * -2.0 / (1.0 - h);
}

} // namespace hydra
