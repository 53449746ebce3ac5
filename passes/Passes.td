// The table of contents of all passes, in the order of the default pipeline.
#ifndef HYDRA_PASSES_TD
#define HYDRA_PASSES_TD

include "mlir/Pass/PassBase.td"

def Bind : Pass<"hydra-bind", "::mlir::ModuleOp"> {
  let summary = "symbols become numbers, types become static";
  let description = [{
    Chooses a preset and overrides, evaluates derived values in exact integer arithmetic, resolves
    `when`, drops parameters that the configuration does not have, makes broadcasts of elementwise
    operations explicit and infers every type in program order. Shape errors carry the line of the
    model. Conditions and initialisers over `layer` stay until `hydra-unroll-layers`. *Exact.*

    Without `programs`, every entry becomes the program of its name. With `programs`, only those
    listed remain; an entry may serve several.
  }];
  let options = [
    Option<"preset", "preset", "std::string", "", "name of a preset of the model">,
    ListOption<"set", "set", "std::string", "NAME=VALUE: gives a symbol a value">,
    ListOption<"programs", "programs", "std::string", "NAME:ENTRY: a program and its entry">,
    Option<"batch", "batch", "int64_t", "0", "value of the entry dimension B">,
    Option<"seq", "seq", "int64_t", "0", "value of the entry dimension S">,
  ];
  let statistics = [Statistic<"boundValues", "values", "values that got a static type">,
                    Statistic<"broadcasts", "broadcasts", "broadcasts made explicit">];
}

def UnrollLayers : Pass<"hydra-unroll-layers", "::mlir::ModuleOp"> {
  let summary = "layers become straight-line code";
  let description = [{
    Replaces every stack by the parameters of its elements (`layers.3.wq`) and every `hydra.for` by
    copies of its body, resolving what depends on `layer`. Locations keep the model's line and gain
    the element. Later passes then see one straight program and may treat layers differently. *Exact.*
  }];
  let statistics = [Statistic<"unrolled", "unrolled", "layer bodies written out">];
}

def Differentiate : Pass<"hydra-differentiate", "::mlir::ModuleOp"> {
  let summary = "adds the backward pass to programs";
  let description = [{
    Walks each program backwards from its output `loss` and lets every operation that depends on a
    parameter build its vector-Jacobian product. Gradients of values used several times, and of
    parameters used several times, are summed in reverse program order; a parameter without
    gradient gets zeros. Adds an output `grad.<parameter>` for each parameter. Operations may first
    be replaced by forms that save row statistics. *Exact* for the forward values.
  }];
  let options = [ListOption<"programs", "programs", "std::string",
                            "programs to differentiate (default: loss)">];
  let statistics = [Statistic<"products", "products", "vector-Jacobian products built">];
}

def Optimizer : Pass<"hydra-optimizer", "::mlir::ModuleOp"> {
  let summary = "adds AdamW updates to differentiated programs";
  let description = [{
    Gives every parameter its moments (`<name>.m`, `<name>.v`: state, f32, zeros), and a program
    `train` the run-time scalars `lr` and `step` (and `clip`: the global norm above which gradients
    are scaled down; 0 or less for none) and the updates of all parameters by their groups. Outputs
    `loss` and, with `clip`, `grad_norm` remain. With `accum` = N > 1 the program becomes two:
    `accumulate` adds gradients divided by N to `<name>.grad`, `apply` updates and clears them.
  }];
  let options = [
    ListOption<"programs", "programs", "std::string", "programs to extend (default: loss)">,
    Option<"accum", "accum", "int64_t", "1", "micro-batches per update">,
    Option<"clip", "clip", "bool", "true", "clip gradients by their global norm">,
  ];
  let statistics = [Statistic<"updates", "updates", "parameters updated">];
}

#endif // HYDRA_PASSES_TD
