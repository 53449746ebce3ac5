// What the target of a module says of the sizes of its kernels.
#pragma once

#include "dialects/hydra/KernelTiles.h"
#include "dialects/hydra/Target.h"
#include "dialects/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace hydra::cuda {

/// What is said of one launch.
class SaidSizes {
public:
  /// The size of this name, if it is said.
  std::optional<int64_t> get(llvm::StringRef name) const;
  bool empty() const { return sizes.empty(); }

  /// An error at the step: what was said, and `problem`.
  mlir::InFlightDiagnostic refuse(mlir::Operation *step) const;

private:
  friend class TileRules;
  std::map<std::string, int64_t> sizes;
  std::string said;
};

class TileRules {
public:
  /// Reads `tiles` and `required_tiles` of the target. Reports, at the module, what is none.
  llvm::LogicalResult read(mlir::Operation *module, TargetAttr target);

  /// Of a launch of the kernel, with heads of this width, if it has any; later rules win.
  SaidSizes of(llvm::StringRef kernel, int64_t width = 0);

  /// Reports, at the module, a rule that is required and was for no launch.
  llvm::LogicalResult checkRequired(mlir::Operation *module) const;

private:
  struct Rule {
    KernelTiles tiles;
    bool used = false;
  };
  std::vector<Rule> rules;
};

} // namespace hydra::cuda
