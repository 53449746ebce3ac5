// Parameters that a value is, or is made of, and parameters by patterns over their names.
#include "passes/Parameters.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace hydra {

ParamOp parameterOf(Value value) {
  auto use = value.getDefiningOp<UseOp>();
  return use ? dyn_cast<ParamOp>(use.lookup()) : ParamOp();
}

ParamOp castParameterOf(Value value) {
  auto cast = value.getDefiningOp<CastOp>();
  return parameterOf(cast ? cast.getX() : value);
}

SmallVector<ParamOp> joinedParametersOf(Value value) {
  SmallVector<Value> parts{value};
  if (auto concat = value.getDefiningOp<ConcatOp>())
    parts.assign(concat.getParts().begin(), concat.getParts().end());
  SmallVector<ParamOp> params;
  for (Value part : parts) {
    ParamOp param = parameterOf(part);
    if (!param)
      return {};
    params.push_back(param);
  }
  return params;
}

SmallVector<ParamOp> parametersOf(Value value) {
  SmallVector<ParamOp> params;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (auto use = dyn_cast_or_null<UseOp>(op)) {
      auto param = dyn_cast<ParamOp>(use.lookup());
      if (!param)
        return {};
      params.push_back(param);
      continue;
    }
    auto precision = dyn_cast_or_null<PrecisionOpInterface>(op);
    if (!precision || precision.precisionClass() != Precision::Move || op->getNumOperands() == 0)
      return {};
    llvm::append_range(work, op->getOperands());
  }
  return params;
}

/// `tok_emb, layers.0.ln1 …`: what names look like.
static std::string examples(ArrayRef<ParamOp> params) {
  constexpr size_t most = 3;
  std::string text;
  for (ParamOp param : params.take_front(most))
    text += (text.empty() ? "" : ", ") + param.getSymName().str();
  return text + (params.size() > most ? ", ..." : "");
}

FailureOr<SmallVector<ParamOp>> parametersMatching(ModelOp model, ArrayRef<std::string> patterns,
                                                   StringRef flag) {
  if (!model.getBody().getOps<StackOp>().empty())
    return model.emitOpError() << "@" << model.getSymName()
                               << " has layers in stacks; run hydra-unroll-layers first";
  SmallVector<ParamOp> params(model.getBody().getOps<ParamOp>());
  llvm::SetVector<Operation *> matched;
  for (const std::string &text : patterns) {
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(text);
    if (!pattern)
      return model.emitOpError() << flag << ": '" << text
                                 << "' is no pattern: " << llvm::toString(pattern.takeError());
    bool any = false;
    for (ParamOp param : params)
      if (pattern->match(param.getSymName())) {
        matched.insert(param);
        any = true;
      }
    if (!any)
      return model.emitOpError() << flag << ": '" << text << "' matches no parameter; they are "
                                 << examples(params);
  }
  return llvm::to_vector(
      llvm::make_filter_range(params, [&](ParamOp param) { return matched.contains(param); }));
}

} // namespace hydra
