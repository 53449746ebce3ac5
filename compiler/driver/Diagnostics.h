// Diagnostics for users: one line each, where it happened first.
#pragma once

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace hydra {

/// `text` as one line: without control characters, and without the middle of what nobody reads (a
/// name of 100 kB, a list of 1000 names). What looks like a path stays.
std::string asLine(llvm::StringRef text);

/// While alive, prints the first error of a context to stderr as
/// `file.mlir:41:10: error: what was found; what was expected` and counts the rest; warnings are
/// printed alike. `silent`: counts, and prints nothing.
class LineDiagnostics {
public:
  explicit LineDiagnostics(mlir::MLIRContext *context, bool silent = false);
  unsigned errors() const { return errorCount; }

private:
  unsigned errorCount = 0;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace hydra
