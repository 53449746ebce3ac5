// What watches every pass: location checks and dumps of each stage.
#pragma once

#include "mlir/Pass/PassInstrumentation.h"

#include <memory>
#include <string>

namespace hydra {

/// Makes a pass fail (with an error at the operation before or around it) when it leaves an
/// operation of a model without location.
std::unique_ptr<mlir::PassInstrumentation> createLocationCheck();

/// Writes the module after every pass to `directory/NN-pass-name.mlir`, creating the directory, but
/// never over `source`, the file of the model. An error is reported once, at the module; the passes
/// go on.
std::unique_ptr<mlir::PassInstrumentation> createPassDump(std::string directory,
                                                          std::string source);

/// Prints to stderr what the passes counted, as Passes.td declares it, once their manager goes.
std::unique_ptr<mlir::PassInstrumentation> createStatisticsReport();
/// Whether `--mlir-pass-statistics` is given.
bool statisticsAsked();

} // namespace hydra
