// Updates whose direction other operations compute: of a matrix as a whole, or by its rows and columns.
#ifndef HYDRA_COMPOSED_TD
#define HYDRA_COMPOSED_TD

include "dialects/hydra/OptimizerOps.td"

/// The last step of an update, element by element, along a direction.
class Hydra_DirectedUpdateOp<string mnemonic>
    : Hydra_OptimizerOp<mnemonic, [
        DeclareOpInterfaceMethods<OptimizerOpInterface, ["checkParameter"]>,
        DeclareOpInterfaceMethods<RowWiseOpInterface, ["operandForm"]>]> {
  let arguments = (ins Hydra_Value:$p, Hydra_Value:$direction, Hydra_Value:$pace, Hydra_Value:$lr,
                       Hydra_Real:$wd, Hydra_Real:$lr_scale);
  let results = (outs Hydra_Value:$p1);
  let authoredResults = "1";
}

def MuonOp : Hydra_DirectedUpdateOp<"muon"> {
  let summary = "the last step of Muon on one matrix";
  let description = [{
    `%p1 = hydra.muon %p, %o, %pace, %lr wd = … lr_scale = …`: p1 = p - lr_scale (lr wd p + pace o), of `p [A, B]`,
    `o [A, B]` in f32, `pace []` and `lr []`.

    As the optimizer of a group, for matrices [A, B]: with g' = scale g,

    ```
    m1 = momentum m + (1 - momentum) g'
    u  = m1, with nesterov momentum m1 + (1 - momentum) g'
    X  = u / max(|u|, 1e-7), |u| the Frobenius norm; then `steps` times, on the smaller side,
    X  = 3.4445 X - 4.7750 (X Xᵀ) X + 2.0315 (X Xᵀ)² X
    o  = X;  pace = lr sqrt(max(1, A/B)), with match_adamw 0.2 lr sqrt(max(A, B))
    ```
    Jordan et al. 2024; torch.optim.Muon. Matmuls are in the format of the policy's.
  }];
}

def AdafactorOp : Hydra_DirectedUpdateOp<"adafactor"> {
  let summary = "the last step of Adafactor on one tensor";
  let description = [{
    `%p1 = hydra.adafactor %p, %u, %pace, %lr wd = … lr_scale = …`: p1 = p - lr_scale (lr wd p + pace u), as for
    `hydra.muon`.

    As the optimizer of a group: with g' = scale g, t the number of the update, from 1, and b = t^-decay,

    ```
    r1 = r + b (mean of g'² over the last dimension - r)
    c1 = c + b (mean of g'² over the one before - c)
    v  = r1 c1 / max(mean of r1 over its last dimension, eps1);  of a tensor of less than two dimensions
         v = v1 = v + b (g'² - v)
    u  = g' / sqrt(max(v, eps1²))
    pace = max(eps2, rms(p)) min(lr, 1 / sqrt(t)) / max(1, rms(u) / threshold)
    ```
    Shazeer and Stern 2018, arXiv:1804.04235; torch.optim.Adafactor.
  }];
}

#endif // HYDRA_COMPOSED_TD
