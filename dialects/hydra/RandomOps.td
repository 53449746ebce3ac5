// Random numbers, and what drops by them.
#ifndef HYDRA_RANDOM_OPS_TD
#define HYDRA_RANDOM_OPS_TD

include "dialects/hydra/ElementwiseOps.td"

def RandomOp : Hydra_ElementwiseOp<"random"> {
  let summary = "a random word that is a function of key and position";
  let description = [{
    `%r = hydra.random %low, %high, %row, %column stream = 3`: word 0 of Philox4x32-7 (Salmon et al., "Parallel random
    numbers: as easy as 1, 2, 3", SC 2011; runtime/support/Philox.h) with the key (low, high) and the counter (row,
    column, stream, 0), element by element; all i32, whose bits are the words. Whole numbers alone: bits are the same
    wherever it is computed, and as often. Made by `hydra-apply-dropout`.
  }];
  let arguments = (ins Hydra_Value:$low, Hydra_Value:$high, Hydra_Value:$row, Hydra_Value:$column,
                       Hydra_Int:$stream);
  let results = (outs Hydra_Value:$y);
}

def DropoutOp : Hydra_ElementwiseOp<"dropout", [
    RecomputeOpInterface, DeclareOpInterfaceMethods<ZeroOpInterface, ["givesZero"]>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]> {
  let summary = "x, of which training drops a part at random";
  let description = [{
    `%y = hydra.dropout %x p = 0.1` (Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from
    Overfitting", JMLR 15, 2014): x. Only where a program trains, `hydra-apply-dropout` gives it truth values (i1) of
    the shape of x: `hydra.dropout %x, %kept p = 0.1` is x / (1 - p) where kept, else 0. `p` is in [0, 1).
  }];
  let arguments = (ins Hydra_Value:$x, Optional<Hydra_Value>:$kept, Hydra_Real:$p);
  let results = (outs Hydra_Value:$y);
  let hasFolder = 1;
}

#endif // HYDRA_RANDOM_OPS_TD
