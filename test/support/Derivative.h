// Derivatives of a program's loss by differences, to hold gradients against.
#pragma once

#include "compiler/reference/Interpreter.h"

#include <optional>
#include <string>

namespace hydra::test {

/// f'(0) by the five-point formula, or std::nullopt when no two step sizes agree: f has a kink or a
/// jump beside 0.
std::optional<double> numericDerivative(llvm::function_ref<double(double)> f);

struct DerivativeOptions {
  unsigned directions = 1; ///< random directions through all parameters at once
  unsigned elements = 4;   ///< single elements, mostly of parameters that have a gradient
  double tolerance = 1e-6; ///< relative
};

/// What a comparison of a gradient with differences found.
struct DerivativeReport {
  unsigned checked = 0;
  unsigned skipped = 0; ///< no derivative there: a kink
  double worst = 0.0;   ///< largest relative error of derivatives above 1e-3
  std::string failures; ///< a line for each derivative beyond the tolerance
};

/// Compares `gradients["grad.<name>"]` for every parameter with differences of the output `loss` of
/// `forward` at `values`.
DerivativeReport checkGradients(EntryOp forward, const TensorMap &values,
                                const TensorMap &gradients, uint64_t seed,
                                const DerivativeOptions &options = {});

} // namespace hydra::test
