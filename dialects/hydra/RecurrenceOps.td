// Linear recurrences along rows.
#ifndef HYDRA_RECURRENCE_OPS_TD
#define HYDRA_RECURRENCE_OPS_TD

include "dialects/hydra/HydraBase.td"

// A state is carried over a whole row, so they compute in f32, from every bit of their operands.
class Hydra_RecurrenceOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [
        StorageOpInterface,
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]>;

def LinearRecurrenceOp : Hydra_RecurrenceOp<"linear_recurrence", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]> {
  let summary = "y_t = sum over n of Re(c h_t), h_t = q h_(t-1) + x_t, for each channel";
  let description = [{
    `%y = hydra.linear_recurrence %x, %q_re, %q_im, %c_re, %c_im`: `x [B, S, D]`; each channel has N complex states,
    at most 256, that begin as 0, with the factors `q [D, N]` and `c [D, N]`, given as real and imaginary parts;
    `y [B, S, D]`. All f32. A linear state space with a diagonal matrix (Gupta et al., "Diagonal State Spaces are as
    Effective as Structured State Spaces", 2022), of which moving averages are a case: what multiplies x may be in c.
    A sixth operand `begins [B, S, 1]`: where it is positive, h_(t-1) counts as 0. It has no derivative.
  }];
  let arguments = (ins Hydra_Value:$x, Hydra_Value:$q_re, Hydra_Value:$q_im, Hydra_Value:$c_re, Hydra_Value:$c_im,
                       Optional<Hydra_Value>:$begins);
  let results = (outs Hydra_Value:$y);
  let extraClassDeclaration = inferDeclaration # [{
    /// Of a channel.
    static constexpr int64_t kMostStates = 256;
  }];
}

def LinearRecurrenceGradOp : Hydra_RecurrenceOp<"linear_recurrence_grad"> {
  let summary = "the derivative of linear_recurrence";
  let description = [{
    `%dx, %dq_re, %dq_im, %dc_re, %dc_im = hydra.linear_recurrence_grad %dy, %x, %q_re, %q_im, %c_re, %c_im`, and
    `begins` behind: with `g_t = conj(q) g_(t+1) + conj(c) dy_t`, `dx_t = sum over n of Re(g_t)`,
    `dq = sum over t of conj(h_(t-1)) g_t`, `dc = sum over t of dy_t conj(h_t)`. States are computed again.
  }];
  let arguments = (ins Hydra_Value:$dy, Hydra_Value:$x, Hydra_Value:$q_re, Hydra_Value:$q_im, Hydra_Value:$c_re,
                       Hydra_Value:$c_im, Optional<Hydra_Value>:$begins);
  let results = (outs Hydra_Value:$dx, Hydra_Value:$dq_re, Hydra_Value:$dq_im, Hydra_Value:$dc_re,
                      Hydra_Value:$dc_im);
  let authoredResults = "5";
}

#endif // HYDRA_RECURRENCE_OPS_TD
