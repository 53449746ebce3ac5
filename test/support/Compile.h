// Compiling and running models inside a test: text to module to passes to values.
#pragma once

#include "compiler/Pipelines.h"
#include "compiler/reference/Interpreter.h"

#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace hydra::test {

/// A context that keeps the diagnostics it gets as text (`file:line:column: message`).
class Compiler {
public:
  Compiler();

  /// The module of a text or file; null when it does not parse or verify.
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text, llvm::StringRef name = "test.mlir");
  mlir::OwningOpRef<mlir::ModuleOp> parseFile(const std::string &path);

  /// Runs the passes that `build` adds, with a check of all locations after each and the verifier
  /// between them. False when a pass failed or any error was reported.
  bool run(mlir::ModuleOp module, llvm::function_ref<void(mlir::PassManager &)> build);
  bool run(mlir::ModuleOp module, std::unique_ptr<mlir::Pass> pass);

  /// Everything reported since the last call, one diagnostic a line.
  std::string takeDiagnostics();

  mlir::MLIRContext context;

private:
  std::vector<std::string> diagnostics;
  unsigned errors = 0;
  mlir::ScopedDiagnosticHandler handler;
};

/// A file of the repository, by its path from the root.
std::string sourcePath(llvm::StringRef path);

/// `hydra-bind` with these options.
std::unique_ptr<mlir::Pass> bindPass(const BindingOptions &binding);

/// The text of a module, without locations.
std::string textOf(mlir::ModuleOp module);

ModelOp modelOf(mlir::ModuleOp module);
/// The program of that name; null if there is none.
EntryOp programOf(mlir::ModuleOp module, llvm::StringRef name = "loss");

/// Random values for all arguments of a bound program and all parameters and state of its model
/// (stacks unrolled). Reals are uniform in [-1, 1); second moments (`….v`) are not negative. i32
/// arguments are ids below the model's symbol `V`; of those called `labels` a tenth is -100. What a
/// tensor gets depends on its name, its shape and `seed` only.
TensorMap randomValues(EntryOp program, uint64_t seed);

/// A number as a tensor without dimensions.
RefTensor scalar(double value);

/// Whether two tensors have the same shape and the same bits.
bool sameBits(const RefTensor &a, const RefTensor &b);

} // namespace hydra::test
