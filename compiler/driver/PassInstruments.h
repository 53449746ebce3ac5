// What watches every pass: location checks and dumps of each stage.
#pragma once

#include "mlir/Pass/PassInstrumentation.h"

#include <memory>
#include <string>

namespace hydra {

/// Makes a pass fail (with an error at the operation before or around it) when it leaves an
/// operation of a model without location.
std::unique_ptr<mlir::PassInstrumentation> createLocationCheck();

/// Writes the module after every pass that changed it to `directory/NN-pass-name.mlir`, creating
/// the directory; an error is reported once, at the module, and makes the pass fail.
std::unique_ptr<mlir::PassInstrumentation> createPassDump(std::string directory);

} // namespace hydra
