// Lion.
#ifndef HYDRA_LION_TD
#define HYDRA_LION_TD

include "dialects/hydra/OptimizerOps.td"

def LionOp : Hydra_UpdateOp<"lion"> {
  let summary = "Lion, the sign of a momentum, on one tensor";
  let description = [{
    `%p1, %m1 = hydra.lion %p, %m, %g, %lr, %scale beta1 = … beta2 = … wd = … lr_scale = …`: with
    g' = scale g, rate = lr_scale lr:

    ```
    p1 = p - rate (wd p + sign(beta1 m + (1 - beta1) g'))      m1 = beta2 m + (1 - beta2) g'
    ```
    The sign of 0 is 0. `scale []` is optional (1). Chen et al. 2023, arXiv:2302.06675.
  }];
  let arguments = (ins Hydra_Value:$p, Hydra_Value:$m, Hydra_Value:$g, Hydra_Value:$lr,
                       Optional<Hydra_Value>:$scale, Hydra_Real:$beta1, Hydra_Real:$beta2,
                       Hydra_Real:$wd, Hydra_Real:$lr_scale);
  let results = (outs Hydra_Value:$p1, Hydra_Value:$m1);
  let authoredResults = "2";
}

#endif // HYDRA_LION_TD
