// One parameter update by the formulas of models.md section 1.3, to hold update programs against.
#pragma once

#include "compiler/reference/Interpreter.h"

#include <cmath>

namespace hydra::test {

/// New parameters, moments and `grad_norm` after one AdamW step of every parameter that is trained
/// by its group, from `inputs` (parameters, moments, `lr`, `step`) and `gradients` (`grad.<name>`),
/// clipped to the global norm `clip` if that is positive.
inline TensorMap naiveUpdate(ModelOp model, const TensorMap &inputs, const TensorMap &gradients,
                             double clip) {
  llvm::StringMap<GroupOp> groups;
  for (GroupOp group : model.getBody().getOps<GroupOp>())
    groups[group.getGroup()] = group;
  double square = 0.0;
  for (auto &[name, g] : gradients)
    if (name.starts_with("grad."))
      for (const double v : g.data)
        square += v * v;
  const double norm = std::sqrt(square);
  const double scale = clip > 0.0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0;
  const double lr = inputs.lookup("lr").data[0], t = inputs.lookup("step").data[0];

  TensorMap result;
  result["grad_norm"] = RefTensor(llvm::ArrayRef<int64_t>(), norm);
  for (ParamOp param : model.getBody().getOps<ParamOp>()) {
    if (param.getFrozen())
      continue;
    const std::string name = param.getSymName().str();
    GroupOp group = groups.lookup(param.getGroup().value_or("default"));
    const double b1 = group.getNumber("beta1"), b2 = group.getNumber("beta2");
    const double rate = lr * group.getNumber("lr_scale");
    RefTensor p = inputs.lookup(name), m = inputs.lookup(name + ".m"),
              v = inputs.lookup(name + ".v");
    const RefTensor g = gradients.lookup("grad." + name);
    for (int64_t i = 0; i < p.size(); ++i) {
      const double gi = scale * g.data[i];
      m.data[i] = b1 * m.data[i] + (1.0 - b1) * gi;
      v.data[i] = b2 * v.data[i] + (1.0 - b2) * gi * gi;
      const double mHat = m.data[i] / (1.0 - std::pow(b1, t));
      const double vHat = v.data[i] / (1.0 - std::pow(b2, t));
      p.data[i] -= rate * group.getNumber("wd") * p.data[i];
      p.data[i] -= rate * mHat / (std::sqrt(vHat) + group.getNumber("eps"));
    }
    result[name] = std::move(p);
    result[name + ".m"] = std::move(m);
    result[name + ".v"] = std::move(v);
  }
  return result;
}

} // namespace hydra::test
