// Discrete Fourier transforms of real numbers.
#ifndef HYDRA_TRANSFORM_OPS_TD
#define HYDRA_TRANSFORM_OPS_TD

include "dialects/hydra/HydraBase.td"

// Complex numbers are a trailing dimension of 2: real part, imaginary part. A row of n real numbers, n even, has
// a spectrum of n/2 + 1 of them, of which the first and the last are real: the rest are their conjugates. Both
// transforms are without factors, as libraries compute them: one behind the other is n times the row.
//
// They compute in f32, from every bit of their operands: what is convolved has long rows, and errors of all of
// a row are in each of its numbers.
class Hydra_TransformOp<string mnemonic, list<Trait> traits = []>
    : Hydra_ValueOp<mnemonic, traits # [
        StorageOpInterface,
        DeclareOpInterfaceMethods<PrecisionOpInterface, ["precisionClass", "takesRounded"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["flops", "costClass"]>,
        DeclareOpInterfaceMethods<DifferentiableOpInterface, ["vjp"]>]> {
  let extraClassDeclaration = inferDeclaration # [{
    ::hydra::Exactness exactness() { return ::hydra::Exactness::Never; }
  }];
}

def RfftOp : Hydra_TransformOp<"rfft"> {
  let summary = "the spectrum of each row: y[k] = sum over t of x[t] exp(-2 pi i k t / n)";
  let description = [{
    `%y = hydra.rfft %x`: `x [..., n]` f32, n even; `y [..., n / 2 + 1, 2]` f32. Cooley and Tukey 1965; of a
    causal convolution both factors are padded with zeros to at least the sum of their lengths.
  }];
  let arguments = (ins Hydra_Value:$x);
  let results = (outs Hydra_Value:$y);
}

def IrfftOp : Hydra_TransformOp<"irfft", [
    DeclareOpInterfaceMethods<RowWiseFormOpInterface, ["needsRowWiseForm", "buildRowWiseForm"]>]> {
  let summary = "n times the rows that have these spectra: x[t] = sum over k < n of y[k] exp(2 pi i k t / n)";
  let description = [{
    `%x = hydra.irfft %y`: `y [..., n / 2 + 1, 2]` f32, `x [..., n]` f32. Imaginary parts of the first and the
    last number count as 0. `real_ends`, which derivatives and `hydra-lower-losses` write: they are 0, as
    functions of some libraries need them.
  }];
  let arguments = (ins Hydra_Value:$y, UnitAttr:$real_ends);
  let results = (outs Hydra_Value:$x);
}

#endif // HYDRA_TRANSFORM_OPS_TD
