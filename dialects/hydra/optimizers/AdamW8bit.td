// AdamW with moments of 8 bits.
#ifndef HYDRA_ADAMW8BIT_TD
#define HYDRA_ADAMW8BIT_TD

include "dialects/hydra/OptimizerOps.td"

def AdamW8bitOp : Hydra_OptimizerOp<"adamw8bit", [EightBitOperandsTrait,
    DeclareOpInterfaceMethods<OptimizerOpInterface>,
    DeclareOpInterfaceMethods<RowWiseOpInterface, ["rowDimensions", "operandForm", "resultForm"]>]> {
  let summary = "decoupled AdamW on the blocks of one tensor, with moments of 8 bits";
  let description = [{
    `%p1, %m1, %m_scale1, %r1, %r_scale1 = hydra.adamw8bit %p, %m, %m_scale, %r, %r_scale, %g, %lr, %step, %scale
    beta1 = … beta2 = … eps = … wd = … lr_scale = …`: a block is a row of `p, g [blocks, size]`, of at most 256
    elements; `m, r [blocks, size]` are f8E4M3FN, their scales `[blocks, 1]` f32. With t = step, g' = scale g, rate =
    lr_scale lr:

    ```
    M = beta1 m_scale m + (1 - beta1) g'      V = beta2 (r_scale r)² + (1 - beta2) g'²
    p1 = p - rate wd p - rate (M / (1 - beta1^t)) / (sqrt(V / (1 - beta2^t)) + eps)
    m_scale1 = the power of two of hydra.quantization_scale of the largest |M| of the block
    r_scale1 = that of sqrt(V)
    m1 = sign(M) round(|M| / m_scale1)        r1 = max(2^-9, round(sqrt(V) / r_scale1))
    ```
    round(y) is one of the two numbers of the format around y: the upper one, if the way to it from the lower one is
    gone by more than u = ((2531 (t mod 4096) + 1597 column) mod 4096 + 1/2) / 4096.

    As the optimizer of a group: blocks are as large as possible from 256 elements down to 64, by which the elements of the
    parameter can be divided. Where none can be, and below `min_size` elements, the update is `hydra.adamw`.
    `scale []` is optional (1). Dettmers et al. 2022, arXiv:2110.02861.
  }];
  let arguments = (ins Hydra_Value:$p, Hydra_Value:$m, Hydra_Value:$m_scale, Hydra_Value:$r,
                       Hydra_Value:$r_scale, Hydra_Value:$g, Hydra_Value:$lr, Hydra_Value:$step,
                       Optional<Hydra_Value>:$scale, Hydra_Real:$beta1, Hydra_Real:$beta2,
                       Hydra_Real:$eps, Hydra_Real:$wd, Hydra_Real:$lr_scale);
  let results = (outs Hydra_Value:$p1, Hydra_Value:$m1, Hydra_Value:$m_scale1, Hydra_Value:$r1,
                      Hydra_Value:$r_scale1);
  let authoredResults = "5";
}

#endif // HYDRA_ADAMW8BIT_TD
