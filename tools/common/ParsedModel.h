// A model with its layers unrolled, for tools that want to know its parameters.
#pragma once

#include "compiler/driver/Diagnostics.h"
#include "dialects/hydra/Hydra.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace hydra {

class ParsedModel {
public:
  ParsedModel();

  /// Parses `text`, which messages call `name`, binds it and unrolls its layers; what is wrong has
  /// then been said on stderr. `settings`: NAME=VALUE. To be called once.
  llvm::LogicalResult load(const std::string &text, const std::string &name,
                           const std::string &preset,
                           const std::vector<std::string> &settings = {});

  ModelOp model();

private:
  mlir::MLIRContext context;
  LineDiagnostics diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> source;
};

} // namespace hydra
