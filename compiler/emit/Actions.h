// What each step of a program does, as plan files say it.
#pragma once

#include "dialects/plan/Plan.h"
#include "runtime/plan/plan_generated.h"

#include <memory>
#include <vector>

namespace hydra {

/// Writes the actions of a file whose kernels are there.
class ActionWriter {
public:
  /// `kernels`: the number of each by its symbol.
  ActionWriter(plan::PlanModuleOp module, planfile::TargetKind target, const planfile::PlanT &file,
               const llvm::DenseMap<mlir::Attribute, uint32_t> &kernels)
      : symbols(module), target(target), file(file), kernels(kernels) {}

  planfile::ActionUnion actionOf(plan::StepInterface step);

  /// The launch itself, and a library's function in its place; none where there is no such
  /// function.
  std::vector<std::unique_ptr<planfile::AlternativeT>> alternativesOf(plan::StepInterface step);

private:
  planfile::ActionUnion launch(plan::LaunchOp op);

  mlir::SymbolTable symbols;
  planfile::TargetKind target;
  const planfile::PlanT &file;
  const llvm::DenseMap<mlir::Attribute, uint32_t> &kernels;
};

} // namespace hydra
