// Diagnostics for users: one line each, where it happened first.
#include "compiler/driver/Diagnostics.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace mlir;

namespace hydra {

static std::optional<FileLineColLoc> placeOf(Location loc) {
  std::optional<FileLineColLoc> place;
  loc->walk([&](Location l) {
    if (auto file = dyn_cast<FileLineColLoc>(l))
      place = file;
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

LineDiagnostics::LineDiagnostics(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        bool error = diagnostic.getSeverity() == DiagnosticSeverity::Error;
        if ((error && errorCount++ > 0) || diagnostic.getSeverity() == DiagnosticSeverity::Note ||
            diagnostic.getSeverity() == DiagnosticSeverity::Remark)
          return success();
        if (auto place = placeOf(diagnostic.getLocation())) {
          llvm::errs() << place->getFilename().getValue() << ':';
          if (place->getLine() > 0) // 0: the whole file is meant
            llvm::errs() << place->getLine() << ':' << place->getColumn() << ':';
          llvm::errs() << ' ';
        }
        std::string text = diagnostic.str();
        llvm::replace(text, '\n', ' ');
        llvm::errs() << (error ? "error: " : "warning: ") << text << '\n';
        return success();
      }) {}

} // namespace hydra
