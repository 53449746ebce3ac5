// AdamW.
#ifndef HYDRA_ADAMW_TD
#define HYDRA_ADAMW_TD

include "dialects/hydra/OptimizerOps.td"

def AdamWOp : Hydra_UpdateOp<"adamw"> {
  let summary = "decoupled AdamW on one tensor";
  let description = [{
    `%p1, %m1, %v1 = hydra.adamw %p, %m, %v, %g, %lr, %step, %scale beta1 = … beta2 = … eps = …
    wd = … lr_scale = …`: with t = step (i32, first is 1), g' = scale g, rate = lr_scale lr:

    ```
    m1 = beta1 m + (1 - beta1) g'      v1 = beta2 v + (1 - beta2) g'²
    p1 = p - rate wd p - rate (m1 / (1 - beta1^t)) / (sqrt(v1 / (1 - beta2^t)) + eps)
    ```
    `scale []` is optional (1). models.md section 1.3; Loshchilov and Hutter 2019.
  }];
  let arguments = (ins Hydra_Value:$p, Hydra_Value:$m, Hydra_Value:$v, Hydra_Value:$g,
                       Hydra_Value:$lr, Hydra_Value:$step, Optional<Hydra_Value>:$scale,
                       Hydra_Real:$beta1, Hydra_Real:$beta2, Hydra_Real:$eps, Hydra_Real:$wd,
                       Hydra_Real:$lr_scale);
  let results = (outs Hydra_Value:$p1, Hydra_Value:$m1, Hydra_Value:$v1);
  let authoredResults = "3";
}

#endif // HYDRA_ADAMW_TD
