// Models of a few lines around one operation, for tests of that operation.
#pragma once

#include "test/support/Compile.h"

namespace hydra::test {

/// A model whose entry `@loss` runs `code` and weighs what it computes:
/// loss = sum of `result` times the argument `weight`. `code` uses parameters and arguments by
/// their names as values.
struct SmallModel {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    double low = -1.0, high = 1.0;
  };
  struct Ids {
    std::string name;
    std::vector<int64_t> shape;
    int64_t limit;        ///< ids are in [0, limit)
    double ignored = 0.0; ///< share of -100
  };

  std::vector<Tensor> parameters, arguments;
  std::vector<Ids> ids;
  std::string code;
  std::string result = "y";
  std::vector<int64_t> resultShape;

  std::string text() const;
  /// Random values for everything, arguments and parameters.
  TensorMap values(uint64_t seed) const;
};

/// A small model that went through binding, and through differentiation in a second copy.
class SmallProgram {
public:
  /// Check `error` before anything else: empty when all went well.
  explicit SmallProgram(const SmallModel &model);
  std::string error;

  EntryOp forward() { return programOf(*forwardModule); }
  EntryOp gradient() { return programOf(*gradientModule); }
  /// The value of the result; empty after an error.
  RefTensor evaluate(const TensorMap &values);
  /// `loss`, `result` and `grad.<parameter>`; empty after an error.
  TensorMap differentiate(const TensorMap &values);

private:
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> forwardModule, gradientModule;
};

} // namespace hydra::test
