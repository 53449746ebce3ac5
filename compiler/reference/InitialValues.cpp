// Starting values of parameters and state.
#include "compiler/reference/Interpreter.h"

#include "runtime/support/Error.h"
#include "runtime/support/Initializers.h"

using namespace mlir;

namespace hydra {

/// The runtime's description of an initialiser for a tensor of `elements`.
static FailureOr<support::Initializer> initializer(Operation *op, InitAttr init, int64_t elements) {
  StringRef kind = init.getKind();
  if (kind == "zeros" || kind == "ones")
    return support::Initializer::constant(kind == "ones" ? 1.0 : 0.0);
  if (kind == "shuffle") {
    auto values = shuffledValues(init, elements, [&] { return op->emitOpError(); });
    if (failed(values))
      return failure();
    return support::Initializer::shuffle(std::move(*values));
  }
  if (llvm::any_of(init.getArgs(), [](Attribute a) { return !isRealOrExpr(a) || hasExpr(a); }))
    return op->emitOpError("has an initialiser that is not bound to numbers");
  double a = realValue(init.getArgs()[0]);
  if (kind == "constant")
    return support::Initializer::constant(a);
  if (kind == "normal")
    return support::Initializer::normal(a);
  if (kind == "uniform")
    return support::Initializer::uniform(a);
  return support::Initializer::truncNormal(a, realValue(init.getArgs()[1]));
}

FailureOr<TensorMap> initialValues(ModelOp model, uint64_t seed) {
  TensorMap values;
  // Drawn from a stream of the name `stream`.
  auto initialize = [&](Operation *op, StringRef name, StringRef stream, RankedTensorType type,
                        InitAttr init) -> LogicalResult {
    FailureOr<support::Initializer> description = initializer(op, init, type.getNumElements());
    if (failed(description))
      return failure();
    RefTensor &tensor = values[name] = RefTensor(type.getShape());
    try {
      support::fill(*description, seed, stream, tensor.data);
    } catch (const support::Error &error) {
      return op->emitOpError() << error.what();
    }
    roundTo(tensor, type.getElementType());
    return success();
  };
  for (Operation &op : model.getBody().front()) {
    if (auto param = dyn_cast<ParamOp>(op)) {
      if (failed(initialize(param, param.getSymName(), param.getSymName(), param.getBoundType(),
                            param.getInit())))
        return failure();
    } else if (auto state = dyn_cast<StateOp>(op)) {
      if (failed(initialize(state, state.getSymName(),
                            state.getRole() == VariableRole::copy ? *state.getOwner()
                                                                  : state.getSymName(),
                            state.getBoundType(), state.getInit())))
        return failure();
    }
  }
  return values;
}

} // namespace hydra
