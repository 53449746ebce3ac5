// What the action CountExponents takes. The same on every target.
#pragma once

#include "runtime/calls/CallSite.h"

namespace hydra::runtime {

/// `count_exponents([factor,] x, y, …, counts)`: adds to counter i of `counts [C]` i32 how many
/// elements of the tensors, in f32 and multiplied by `factor []` f32 if the action is scaled, have
/// the exponent first + i (support/ExponentCounts.h). Tensors in f32, bf16 or f16. All dense.
struct CountExponentsSpec {
  struct Tensor {
    support::DType dtype = support::DType::F32;
    int64_t elements = 0;
  };
  std::vector<Tensor> tensors; ///< argument i, or i + 1 behind a factor
  bool scaled = false;
  int64_t first = 0, counters = 0;
};

/// The call that a step asks for. Throws Error when its tensors or attributes do not fit.
CountExponentsSpec describeCountExponents(const CallSite &site);

} // namespace hydra::runtime
