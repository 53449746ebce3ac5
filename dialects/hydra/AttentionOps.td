// Attention with grouped heads, caps on scores, and causal, chunked and sliding-window masks.
#ifndef HYDRA_ATTENTION_OPS_TD
#define HYDRA_ATTENTION_OPS_TD

include "dialects/hydra/NormOps.td"

class Hydra_AttentionLikeOp<string mnemonic, list<Trait> traits = [], string moreDeclaration = "">
    : Hydra_ValueOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<StorageOpInterface, ["operandLayout", "resultLayout"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>]> {
  let extraClassDeclaration = inferDeclaration # [{
    static constexpr int64_t kWidest = 4096; ///< head, whose tiles kernels hold
    /// Sizes of chunks and of the window where they hide something of a sequence; else 0.
    int64_t maskChunk();
    int64_t maskWindow();
    double scoreCap(); ///< 0: none
  }] # moreDeclaration;
}

def AttentionOp : Hydra_AttentionLikeOp<"attention", [Hydra_SavingVJP], [{
    /// Parts that training drops; 0: none. Known when layers are unrolled.
    double droppedWeights();
    double droppedKeys();
  }]> {
  let summary = "softmax(scale q kᵀ) v per head, under a mask";
  let description = [{
    `%o = hydra.attention %q, %k, %v scale = 0.125 causal`: `q [B, S, H, hd]`, `k [B, Sk, Hk, hd]`,
    `v [B, Sk, Hk, dv]`, `o [B, S, H, dv]`; query head h reads key head `h / (H / Hk)`. Query i sees
    key j when: `causal`: j <= i; `chunk = c`: also i / c = j / c; `window = w`: also i - j < w.
    `cap = c`: scores are `c tanh(s / c)` before the mask (Gemma 2). Scale and cap are positive, and widths are at most 4096. A row that sees nothing gives zeros. With `saving`, also `lse [B, H, S]` (f32), the logarithm of
    the sum of e^score. models.md section 1.3.

    `dropkey = p` (Li et al., "DropKey for Vision Transformer", CVPR 2023): a program that trains hides each key from
    each query and head with probability p, in front of the softmax. `dropout = p`: it drops weights behind the softmax as
    `hydra.dropout` does. Both in [0, 1). `hydra-apply-dropout` writes such an attention as its steps; all other programs lose
    the attributes, which alone change no value.
  }];
  let arguments = (ins Hydra_Value:$q, Hydra_Value:$k, Hydra_Value:$v, Hydra_Real:$scale,
                       Hydra_Optional<Hydra_Real>:$cap, UnitAttr:$causal,
                       Hydra_Optional<Hydra_Int>:$chunk, Hydra_Optional<Hydra_Int>:$window,
                       Hydra_Optional<Hydra_Real>:$dropout, Hydra_Optional<Hydra_Real>:$dropkey,
                       UnitAttr:$saving);
  let results = (outs Hydra_Value:$o, Optional<Hydra_Value>:$lse);
}

def AttentionGradOp : Hydra_AttentionLikeOp<"attention_grad"> {
  let summary = "the derivative of attention, scores recomputed from lse";
  let description = [{
    `%dq, %dk, %dv = hydra.attention_grad %do, %q, %k, %v, %o, %lse scale = 0.125 causal`. Under a cap c a score t
    has the slope `1 - (t / c)²`.
  }];
  let arguments = (ins Hydra_Value:$d_o, Hydra_Value:$q, Hydra_Value:$k, Hydra_Value:$v,
                       Hydra_Value:$o, Hydra_Value:$lse, Hydra_Real:$scale,
                       Hydra_Optional<Hydra_Real>:$cap, UnitAttr:$causal,
                       Hydra_Optional<Hydra_Int>:$chunk, Hydra_Optional<Hydra_Int>:$window);
  let results = (outs Hydra_Value:$dq, Hydra_Value:$dk, Hydra_Value:$dv);
  let authoredResults = "3";
}

def CachedAttentionOp : Hydra_ValueOp<"cached_attention", [
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
    DeclareOpInterfaceMethods<StorageOpInterface,
                              ["operandLayout", "resultLayout", "overwritableOperands"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["flops", "bytes", "costClass"]>]> {
  let summary = "attention of a call's tokens over those that earlier calls left";
  let description = [{
    `%o, %keys, %values = hydra.cached_attention %q, %k, %v, %old_keys, %old_values, %position scale = 0.125`:
    `q [B, C, H, hd]`, `k [B, C, Hk, hd]` and `v [B, C, Hk, dv]` are of the C tokens of a call, which stand at
    `position [B]` (f32, whole) and behind; `keys [B, Hk, slots, hd]` and `values [B, Hk, slots, dv]` are of all, the
    token at t in slot `t mod slots`. Rows of the call go into their slots first, rounded if these hold fewer bits. A query at i sees the tokens up to
    itself of which the call overwrites none, from `i - w + 1` (`window = w`), of its chunk (`chunk = c`: from
    `i - i mod c`). Scores may have a `cap`. Query head h reads key head `h / (H / Hk)`. Where `position` is negative nothing is kept, and o
    is zero. Made by `hydra-cache`; has no derivative.
  }];
  let arguments = (ins Hydra_Value:$q, Hydra_Value:$k, Hydra_Value:$v, Hydra_Value:$keys,
                       Hydra_Value:$values, Hydra_Value:$position, Hydra_Real:$scale,
                       Hydra_Optional<Hydra_Real>:$cap, Hydra_Optional<Hydra_Int>:$chunk, Hydra_Optional<Hydra_Int>:$window);
  let results = (outs Hydra_Value:$o, Hydra_Value:$new_keys, Hydra_Value:$new_values);
  let authoredResults = "3";
  let extraClassDeclaration = inferDeclaration # [{
    int64_t maskChunk(); ///< 0: none
    int64_t maskWindow();
    double scoreCap();
  }];
}

#endif // HYDRA_ATTENTION_OPS_TD
