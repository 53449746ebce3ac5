// Stochastic gradient descent.
#ifndef HYDRA_SGD_TD
#define HYDRA_SGD_TD

include "dialects/hydra/OptimizerOps.td"

def SgdOp : Hydra_UpdateOp<"sgd"> {
  let summary = "stochastic gradient descent with momentum on one tensor";
  let description = [{
    `%p1, %b1 = hydra.sgd %p, %b, %g, %lr, %scale momentum = 0.9 wd = … lr_scale = … nesterov`: with
    g' = scale g + wd p, rate = lr_scale lr:

    ```
    b1 = momentum b + g'      p1 = p - rate b1, with nesterov p - rate (g' + momentum b1)
    ```
    `scale []` is optional (1). Without momentum there is nothing to keep: `%p1 = hydra.sgd %p, %g, %lr,
    %scale wd = … lr_scale = …`. models.md section 1.3; Sutskever et al. 2013.
  }];
  let arguments = (ins Variadic<Hydra_Value>:$inputs, Hydra_Optional<Hydra_Real>:$momentum,
                       Hydra_Real:$wd, Hydra_Real:$lr_scale, UnitAttr:$nesterov);
  let results = (outs Hydra_Value:$p1, Optional<Hydra_Value>:$b1);
  let authoredResults =
      "Adaptor(operands, attributes, properties, regions).getMomentumAttr() ? 2 : 1";
  let extraClassDeclaration = inferDeclaration # [{
    ::mlir::Value getP() { return getInputs().front(); }
  }];
}

#endif // HYDRA_SGD_TD
