// The default order of passes for each thing a model can be compiled to.
#pragma once

#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"

namespace hydra {

enum class Mode { Forward, Grad, Train };

/// What binds a model: see `hydra-bind`.
struct BindingOptions {
  std::string preset;
  std::vector<std::string> settings; ///< NAME=VALUE
  int64_t batch = 0, seq = 0;        ///< 0: not given
  std::vector<std::string> programs; ///< NAME:ENTRY; empty: every entry
};

/// Binds, unrolls and simplifies.
void buildForwardPipeline(mlir::OpPassManager &passes, const BindingOptions &binding);
/// Adds the backward pass to `programs`, and for training the update; `scaleLoss`: of gradients
/// that a state has multiplied.
void buildTrainingPipeline(mlir::OpPassManager &passes, Mode mode,
                           std::vector<std::string> programs, int64_t accumulation, bool clip,
                           bool scaleLoss = false);

/// The dialects of models and plans, with the lowerings between them.
void registerDialects(mlir::DialectRegistry &registry);
/// The same and all passes by name, for tools that take pass names.
void registerEverything(mlir::DialectRegistry &registry);

} // namespace hydra
