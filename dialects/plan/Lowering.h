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
  /// Whether part `part` of a concatenation already lies in its place.
  virtual bool isInPlace(mlir::Operation *concat, unsigned part) = 0;

  /// Adds a call of a library function; `op` gives place, cost and class. `reads` come first.
  virtual void call(mlir::Operation *op, llvm::StringRef function, mlir::ValueRange reads,
                    mlir::ValueRange writes,
                    llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) = 0;

  /// The same for a function that reads `updates` and writes them.
  virtual void update(mlir::Operation *op, llvm::StringRef function, mlir::ValueRange reads,
                      mlir::ValueRange updates,
                      llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) = 0;

protected:
  explicit Lowering(mlir::MLIRContext *context) : b(context) {}
  mlir::OpBuilder b;
};

} // namespace hydra::plan
