// Models of a few lines around one operation.
#include "test/support/SmallModel.h"

#include "test/support/Random.h"

#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace hydra::test {

std::string SmallModel::text() const {
  std::string text = "hydra.model @small version 1 {\n", uses, list, axes;
  for (const Tensor &p : parameters) {
    text += "  hydra.param @" + p.name + " " + shapeText(p.shape) + " init = zeros\n";
    uses += "    %" + p.name + " = hydra.use @" + p.name + "\n";
  }
  auto argument = [&](const std::string &name, ArrayRef<int64_t> shape, const char *dtype) {
    list += (list.empty() ? "%" : ", %") + name + ": " + shapeText(shape) + " " + dtype;
  };
  for (const Ids &i : ids)
    argument(i.name, i.shape, "i32");
  for (const Tensor &a : arguments)
    argument(a.name, a.shape, "f32");
  argument("weight", resultShape, "f32");
  for (size_t i = 0; i < resultShape.size(); ++i)
    axes += (i ? ", " : "") + std::to_string(i);
  text += "  hydra.entry @loss(" + list + ") {\n" + uses + code;
  text += "    %weighted = hydra.mul %" + result + ", %weight\n";
  if (axes.empty())
    return text + "    hydra.return loss = %weighted, result = %" + result + "\n  }\n}\n";
  return text + "    %loss = hydra.sum %weighted axes = [" + axes +
         "]\n    hydra.return loss = %loss, result = %" + result + "\n  }\n}\n";
}

TensorMap SmallModel::values(uint64_t seed) const {
  TensorMap values;
  auto real = [&](const Tensor &t) {
    Random random(seed ^ llvm::xxh3_64bits(t.name));
    RefTensor &tensor = values[t.name] = RefTensor(t.shape);
    for (double &v : tensor.data)
      v = t.low + 0.5 * (random.uniform() + 1.0) * (t.high - t.low);
  };
  for (const Tensor &p : parameters)
    real(p);
  for (const Tensor &a : arguments)
    real(a);
  real({"weight", resultShape});
  for (const Ids &i : ids) {
    Random random(seed ^ llvm::xxh3_64bits(i.name));
    RefTensor &tensor = values[i.name] = RefTensor(i.shape);
    for (double &v : tensor.data)
      v = random.chance(i.ignored) ? -100 : random.below(i.limit);
  }
  return values;
}

SmallProgram::SmallProgram(const SmallModel &model) {
  forwardModule = compiler.parse(model.text());
  if (forwardModule && compiler.run(*forwardModule, createBind())) {
    gradientModule = forwardModule->clone();
    if (compiler.run(*gradientModule, createDifferentiate()))
      return;
  }
  error = compiler.takeDiagnostics() + model.text();
}

RefTensor SmallProgram::evaluate(const TensorMap &values) {
  FailureOr<TensorMap> results = interpret(forward(), values);
  if (succeeded(results))
    return results->lookup("result");
  error = compiler.takeDiagnostics();
  return {};
}

TensorMap SmallProgram::differentiate(const TensorMap &values) {
  FailureOr<TensorMap> results = interpret(gradient(), values);
  if (succeeded(results))
    return *results;
  error = compiler.takeDiagnostics();
  return {};
}

} // namespace hydra::test
