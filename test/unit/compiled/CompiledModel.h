// A model through hydrac's pipeline to a plan and through the CPU executor, inside a test, and what
// the oracle says of it.
#pragma once

#include "compiler/PlanPipeline.h"
#include "test/support/Compile.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hydra::test {

/// A model's text with what binds it, compiled in mode grad (`loss` and `grad.<parameter>`) or
/// forward; the program is always that of the entry `@loss`.
class CompiledModel {
public:
  /// `precision` is that of `hydrac --precision`; the oracle then evaluates the program with its
  /// casts, so that rounding every result to its type rounds what the plan rounds.
  CompiledModel(std::string text, BindingOptions binding, Mode mode,
                std::string precision = "fp32");

  /// The bytes of the plan file; a failed expectation, and no bytes, when it does not compile.
  /// `parallel`: the compiler may use several threads.
  std::vector<std::byte> plan(unsigned level = 2, std::vector<std::string> disabled = {},
                              bool parallel = false) const;

  /// Random values for all inputs, parameters and state, rounded to f32.
  const TensorMap &values() const { return inputs; }
  void drawValues(uint64_t seed);
  void setValues(TensorMap values);

  /// What the oracle computes from the values, in float64 or with every result rounded to its type.
  TensorMap evaluate(bool round);

private:
  std::string text;
  BindingOptions binding;
  Mode mode;
  std::string precision;
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> reference; ///< bound, differentiated in mode grad
  TensorMap inputs;
};

/// The outputs of one run of a plan's first program, and the state it leaves, by name.
TensorMap runPlan(const std::vector<std::byte> &plan, const TensorMap &values, unsigned threads);

/// Expects of every tensor of `exact` that `found` is no further from it than twice `rounded` is,
/// by the largest difference, with some ulps (of f32 unless given) of the largest element for sums
/// in another order.
void expectWithinRounding(const TensorMap &found, const TensorMap &exact, const TensorMap &rounded,
                          double ulp = 0x1p-24);

/// Expects the same tensors with the same bits.
void expectSameBits(const TensorMap &found, const TensorMap &wanted);

} // namespace hydra::test
