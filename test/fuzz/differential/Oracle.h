// What a program must compute: the calls that are made, the values they start from, and what the
// reference interpreter says of them.
#pragma once

#include "test/fuzz/differential/Case.h"
#include "test/support/Compile.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hydra::test {

/// One run of a program, with the values of its inputs and numbers.
struct Call {
  std::string program;
  std::string prefix; ///< of the names of its outputs in results
  TensorMap values;
};

/// Calls one after the other from the same parameters and state.
struct Work {
  TensorMap variables;
  std::vector<Call> calls;
  size_t firstStep = 0; ///< how many calls the first step of training is; 0: none trains
};

/// The programs that hydrac makes of a model in the setting's mode, as `hydra-bind` takes them.
std::vector<std::string> programsOf(ModelOp model, const Setting &setting);

/// What is remembered of the largest magnitudes of operands, which begins as zeros. With a mesh a
/// plan may have more operands than one rank has (docs/training.md, eight bits).
bool isOfOperands(llvm::StringRef name);

/// Does the work with the programs of a module in the dialect `hydra`, at any stage. Nothing where
/// the interpreter fails; the context then knows why.
std::optional<TensorMap> interpretWork(mlir::ModuleOp module, const Work &work,
                                       const InterpreterOptions &options);

/// The oracle for a case under settings of one oracle key.
class Oracle {
public:
  /// Binds, differentiates, draws values, and evaluates in float64 and rounded to the types.
  Oracle(Compiler &compiler, const Case &source, const Setting &setting);

  /// Why the model is none, or cannot be differentiated; empty when it can be compared with.
  const std::string &refusal() const { return problem; }
  /// Whether it is the values that it cannot be computed with, of which a plan may refuse a run.
  bool refusesValues() const { return valuesRefused; }
  /// Why it cannot be had in the precision, which is then the compiler's fault.
  const std::string &precisionRefusal() const { return precisionProblem; }
  const Work &work() const { return todo; }
  /// Outputs of all calls under prefix and name, and in the end all parameters and state by name.
  const TensorMap &exact() const { return exactValues; }
  const TensorMap &rounded() const { return roundedValues; }

private:
  bool draw(const Case &source, const Setting &setting);
  void drawText(const Case &source, const Setting &setting);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string problem, precisionProblem;
  bool valuesRefused = false;
  Work todo;
  TensorMap exactValues, roundedValues;
};

} // namespace hydra::test
