// The choice of the next token.
#ifndef HYDRA_SAMPLING_OPS_TD
#define HYDRA_SAMPLING_OPS_TD

include "dialects/hydra/HydraBase.td"

def SampleOp : Hydra_ValueOp<"sample", [
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
    DeclareOpInterfaceMethods<StorageOpInterface, ["overwritableOperands"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["flops", "bytes", "costClass"]>]> {
  let summary = "an id drawn from the scores of all";
  let description = [{
    `%token, %seen = hydra.sample %scores, %tokens, %old_seen, %position, %settings, %draw`: `scores [B, V]` (f32) of the
    token behind those of the call, `tokens [B, C]` (i32), which stand at `position [B]` (f32, whole) and behind.
    `seen [B, ceil(V / 32)]` (i32) has a bit for each id that the sequence has; a call at position 0 begins with none.
    `settings [B, 5]` (f32) are temperature, top-k, top-p, min-p and repetition penalty; `draw [B, 4]` (i32) are the
    words of Philox: the key, low word first, the number of the sequence, that of the token.

    Scores of ids that were seen are divided by the penalty where they are positive, else multiplied. With temperature
    0 `token [B]` (i32) is the id of the highest, the lowest of equal ones. Else ids are in the order of their scores,
    of equal ones the lower first, and have the weights exp((score - highest) / temperature). Kept are the first k
    (0: all), of them the first that have together at least the part p of their weights, of them those with at least
    min-p of the first one's. Of these, in the order of ids, that one is taken in whose part of the sum of weights the
    random number is. runtime/support/Sampling.h says how weights are rounded, so that bits are the same everywhere.

    Where a score is NaN or +inf, `token` is -1 - i of the first such id i; where all are -inf, -1. Where
    `position` is negative nothing is kept, and `token` is 0. Made by `hydra-cache`; has no derivative.
  }];
  let arguments = (ins Hydra_Value:$scores, Hydra_Value:$tokens, Hydra_Value:$seen,
                       Hydra_Value:$position, Hydra_Value:$settings, Hydra_Value:$draw);
  let results = (outs Hydra_Value:$token, Hydra_Value:$new_seen);
  let authoredResults = "2";
  let extraClassDeclaration = inferDeclaration # [{
    /// Columns of `settings` and `draw`.
    static constexpr int64_t kSettings = 5, kDraw = 4;
    /// The most ids.
    static constexpr int64_t kMostIds = int64_t{1} << 24;
  }];
}

#endif // HYDRA_SAMPLING_OPS_TD
