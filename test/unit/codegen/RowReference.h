// Evaluates row programs node by node in float64: what generated code is held against.
#pragma once

#include "compiler/codegen/rows/RowProgram.h"

#include <vector>

namespace hydra::test {

/// Numbers of a tensor in row-major order.
using Numbers = std::vector<double>;

/// `rounded`: every value is rounded to its type and sums run in f32, as a plain low-precision
/// implementation would; the error of that calibrates tolerances.
std::vector<Numbers> evaluateRows(const RowProgram &program, const std::vector<Numbers> &inputs,
                                  bool rounded);

/// To the nearest number of the type.
double roundTo(double x, RowType type);

} // namespace hydra::test
