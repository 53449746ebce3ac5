// Diagnostics for users: one line each, where it happened first.
#pragma once

#include "mlir/IR/Diagnostics.h"

namespace hydra {

/// While alive, prints the first error of a context to stderr as
/// `file.mlir:41:10: error: what was found; what was expected` and counts the rest; warnings are
/// printed alike.
class LineDiagnostics {
public:
  explicit LineDiagnostics(mlir::MLIRContext *context);
  unsigned errors() const { return errorCount; }

private:
  unsigned errorCount = 0;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace hydra
