// What an operation is given to turn itself into steps of a plan.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace hydra::plan {

class Lowering {
public:
  virtual ~Lowering() = default;

  mlir::OpBuilder &builder() { return b; }

  /// The buffer (or view) that holds a value of the model.
  virtual mlir::Value source(mlir::Value value) = 0;
  /// The buffer that a result must be written to: new, or bytes where it is wanted anyway.
  virtual mlir::Value target(mlir::Value result) = 0;
  /// A transient buffer for the steps of one operation.
  virtual mlir::Value scratch(mlir::Operation *op, llvm::ArrayRef<int64_t> shape,
                              mlir::Type element) = 0;
  /// Whether an operand of an operation that moves it already lies where that puts it.
  virtual bool isInPlace(mlir::Operation *move, unsigned operand) = 0;

  /// Counts a step that was made for `op`, and notes its work, class and name from there.
  virtual void finish(mlir::Operation *op, mlir::Operation *step) = 0;

protected:
  explicit Lowering(mlir::MLIRContext *context) : b(context) {}
  mlir::OpBuilder b;
};

} // namespace hydra::plan
