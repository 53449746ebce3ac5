// The table of contents of all passes, in the order of the default pipeline.
#ifndef HYDRA_PASSES_TD
#define HYDRA_PASSES_TD

include "mlir/Pass/PassBase.td"

def Bind : Pass<"hydra-bind", "::mlir::ModuleOp"> {
  let summary = "symbols become numbers, types become static";
  let description = [{
    Chooses a preset and overrides, evaluates derived values in exact integer arithmetic, writes out
    arithmetic (`let`) and definitions with the values that calls give to their parameters, takes
    bundles apart into the values that they hold, resolves `when`, drops parameters that the configuration
    does not have, makes broadcasts of elementwise operations explicit and infers every type in program
    order. A `hydra.dropout` of the part 0 goes. Shape errors carry the line of the model. Conditions and initialisers over `layer` stay until
    `hydra-unroll-layers`. *Exact.*

    Without `programs`, every entry becomes the program of its name. With `programs`, only those
    listed remain; an entry may serve several, each with its own entry dimensions, and a run may use
    them for something of their own: `programs=train:loss,eval@eval:loss,logits@generate:logits:B=1`.
    A program of the role `eval` also returns `loss_labels`, how many labels count, where its loss is over
    labels that it makes itself; of several sets, those of all.

    A `hydra.scan` over many whole chunks becomes a `hydra.loop` that runs an entry of its own, which
    later passes work on once whatever the length; one over few is written out chunk by chunk, which
    leaves more to fuse, and so is one that uses parameters under a condition or of layers.

    With `mesh` the model is for several ranks. It stays that of the whole batch; which dimension of
    arguments is B is noted for `hydra-partition`. Programs with the role `generate` read the same on all
    ranks.
  }];
  let options = [
    Option<"preset", "preset", "std::string", "", "name of a preset of the model">,
    ListOption<"set", "set", "std::string", "NAME=VALUE: gives a symbol a value">,
    Option<"staticRouting", "static-routing", "bool", "false", "every choice that can be 'static' is, unless set says otherwise">,
    ListOption<"programs", "programs", "std::string", "NAME[@ROLE]:ENTRY[:DIM=VALUE]...: a program and its entry">,
    Option<"batch", "batch", "int64_t", "0", "value of the entry dimension B">,
    Option<"seq", "seq", "int64_t", "0", "value of the entry dimension S">,
    Option<"context", "context", "int64_t", "1024", "the most tokens of a sequence in programs of the role decode">,
    ListOption<"mesh", "mesh", "std::string", "NAME:SIZE: an axis of ranks that share the batch, outermost first">,
    Option<"loopsFrom", "loops-from", "int64_t", "8", "whole chunks from which on a scan becomes a loop">,
    Option<"callSites", "call-sites", "bool", "false", "operations of a definition have the place of its call behind their own">,
  ];
  let statistics = [Statistic<"boundValues", "values", "values that got a static type">,
                    Statistic<"broadcasts", "broadcasts", "broadcasts made explicit">];
}

def SetTarget : Pass<"hydra-set-target", "::mlir::ModuleOp"> {
  let summary = "the machine that the module is for becomes an attribute of it";
  let description = [{
    `--hydra-set-target=target={#hydra.target<…>}`: passes decide by this attribute alone. hydrac makes it
    from a description (compiler/targets). *Exact.*
  }];
  let options = [Option<"target", "target", "std::string", "", "the attribute">];
  let dependentDialects = ["::hydra::HydraDialect"];
}

def UnrollLayers : Pass<"hydra-unroll-layers", "::mlir::ModuleOp"> {
  let summary = "layers become straight-line code";
  let description = [{
    Replaces every stack by the parameters of its elements (`layers.3.wq`) and every `hydra.for` by
    copies of its body, resolving what depends on `layer`. Locations keep the model's line and gain
    the element. Later passes then see one straight program and may treat layers differently. *Exact.*
  }];
  let options = [Option<"boundaries", "boundaries", "bool", "false",
                        "mark where layers begin, for hydra-recompute">];
  let statistics = [Statistic<"unrolled", "unrolled", "layer bodies written out">];
}

def ApplyDropout : Pass<"hydra-apply-dropout", "::mlir::ModuleOp"> {
  let summary = "what is trained drops at random, all else does not";
  let description = [{
    Every `hydra.dropout` of the programs listed gets its truth values; in all others it goes. Kept is where a word that
    `hydra.random` makes of key and position is, as a signed number, at least p 2^32 - 2^31: there is no state of a
    generator to be kept, and each rank computes the truth values of its rows. The backward pass reads those of the forward pass, a byte an element,
    or computes them again with their layer (`hydra-recompute`).

    The key is two run-time scalars, `draw_low` and `draw_high`, drawn anew for every step from the seed of the run; each
    `hydra.dropout` of a program, in its order, has a stream. The position of [d0, …, dn, columns] is (row, column), where
    rows count through d0 … dn, behind those of the micro-batches before (the scalar `micro_batch`). So rank r of N drops
    what micro-batch r of N drops, if d0 is the batch. Bodies of loops get a copy that takes a key of the loop and the
    number of the iteration, from which their own keys are drawn. A `hydra.attention` that drops is written as the steps of
    hydra-decompose-attention, with truth values that hide keys in front of the softmax, and a `hydra.dropout` behind it.

    In front of everything that merges equal operations: two dropouts of one value are not the same. Says, without
    `programs`, that nothing trains. *Exact* where nothing drops.
  }];
  let options = [ListOption<"programs", "programs", "std::string", "programs that train (default: none)">];
  let statistics = [Statistic<"masks", "masks", "truth values drawn">];
}

def Lora : Pass<"hydra-lora", "::mlir::ModuleOp"> {
  let summary = "beside frozen matrices, products of two small ones are trained";
  let description = [{
    For `--lora` (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021). Every parameter w [N, K]
    whose name matches a target gets two others: `<name>.lora_a` A [R, K], uniform in ±1/sqrt(K), and
    `<name>.lora_b` B [N, R], zeros. `hydra.linear` with the weight w becomes x wᵀ + alpha / R (x Aᵀ) Bᵀ, in loops over
    chunks too. The weight [E, N, K] of `hydra.grouped_linear` gets [E, R, K] and [E, N, R], by which the rows of each expert are
    multiplied in the same way. All parameters but the new ones become `frozen`: neither gradients nor moments of the whole matrices
    exist, at rank 16 of a Llama of 8 billion parameters 60 GiB less of moments alone. What reads such a
    parameter otherwise (a table, a loss with its projection) is refused. *Numerics-changing*: another model.
  }];
  let options = [
    Option<"rank", "rank", "int64_t", "0", "of the products: R">,
    Option<"alpha", "alpha", "double", "0.0", "the products are multiplied by alpha / R">,
    ListOption<"targets", "targets", "std::string", "patterns over the names of parameters">,
  ];
  let statistics = [Statistic<"adapted", "adapted", "parameters that got an adapter">];
}

def Freeze : Pass<"hydra-freeze", "::mlir::ModuleOp"> {
  let summary = "parameters that are not trained";
  let description = [{
    For `--freeze`. Marks the parameters whose names match a pattern (`layers.*.wq`; `*` stands for any
    characters) as `frozen`. What is frozen has no gradient, no moments and no update, here or on other ranks, and
    backward work that only it would need does not exist: no gradient of a frozen weight, nothing below the
    lowest parameter that is trained. *Exact* for the parameters that are trained, but for the norm of all
    gradients, to which frozen ones add nothing.
  }];
  let options = [ListOption<"patterns", "patterns", "std::string", "patterns over the names of parameters">];
  let statistics = [Statistic<"frozen", "frozen", "parameters frozen">];
}

def Cache : Pass<"hydra-cache", "::mlir::ModuleOp"> {
  let summary = "programs of whole sequences become programs that read on behind earlier calls";
  let description = [{
    A program of the role `decode` is bound for the tokens of one call. This pass gives it the argument
    `position [B]`, the number of tokens that each sequence has behind it, and state (role `cache`) for what
    operations need of those: attention keeps keys and values, as many as its mask lets a token see and at
    most `context`, in slots by position; a scan keeps what it carries; rows padded with zeros in front, the
    rows before. Rotations and `hydra.iota` with `positions` begin at `position`. At position 0 a sequence begins
    anew; where `position` is -1 a call is not for the sequence, which stays as it was. The scores are the row
    of the last token alone; beside them the program returns `token [B]`, the id that `hydra.sample` draws from
    them by the arguments `settings [B, 5]` and `draw [B, 4]`, and keeps which ids sequences have.

    Operations say what they need by the cache interface. What treats each token alone needs none: the pass
    follows the dimension of tokens by the partition interface, and reports, with its line, an operation that
    reads several tokens together without such a rule, and a number that is made of how many tokens a call
    has. All programs of the role keep the same state; at least one reads two tokens a call or more. *Numerics-changing*: attention is summed in another order.
  }];
  let options = [Option<"context", "context", "int64_t", "1024", "the most tokens of a sequence">,
                 Option<"policy", "policy", "std::string", "\"fp32\"",
                        "of hydra-mixed-precision: in its format keys and values are kept">];
  let statistics = [Statistic<"kept", "kept", "operations that read on from earlier tokens">];
}

def RaiseAttention : Pass<"hydra-raise-attention", "::mlir::ModuleOp"> {
  let summary = "matmuls, cap, mask and softmax over all scores become attention";
  let description = [{
    Recognises softmax(scale q kᵀ + mask) v with heads before rows, with scale and mask in any order,
    the mask as a selection of or a sum with minus infinities (or -1e9 and below), causal, chunked or windowed, with
    grouped query heads as rows of one matmul, maybe `cap tanh(. / cap)` under the mask (Gemma 2), and writes it as `hydra.attention`, whose kernels
    never hold the scores: B H S² elements less for each tensor of that shape. Undoes
    hydra-decompose-attention. *Numerics-changing*.
  }];
  let statistics = [Statistic<"raised", "raised", "attentions recognised">];
}

def DecomposeAttention : Pass<"hydra-decompose-attention", "::mlir::ModuleOp"> {
  let summary = "attention as matmuls, a cap, a mask and a softmax over all scores";
  let description = [{
    Writes `hydra.attention` as a matmul for the scores, their scale, cap and mask, a softmax and a matmul
    with the values, for `--attention=naive`: to compare with, and to see what the fused form saves.
    Needs B H S² elements for the softmax, which the backward pass reads, and one more tensor of that
    size while it runs. *Numerics-changing*.
  }];
  let statistics = [Statistic<"decomposed", "decomposed", "attentions written out">];
}

def RaiseLinearCE : Pass<"hydra-raise-linear-ce", "::mlir::ModuleOp"> {
  let summary = "a linear layer before a cross entropy becomes one operation with it";
  let description = [{
    Writes `hydra.cross_entropy` of a linear layer without bias (or of a matmul with a transposed
    matrix), whose logits nothing else reads, as `hydra.linear_cross_entropy`, which
    hydra-chunk-linear-ce computes without ever holding all logits. At B S = 4096 and V = 50304 that
    saves 786 MiB of logits and as much of their gradient. *Numerics-changing*: the weight's
    gradient is summed over chunks.
  }];
  let statistics = [Statistic<"raised", "raised", "losses joined with their projection">];
}

def FuseQKV : Pass<"hydra-fuse-qkv", "::mlir::ModuleOp"> {
  let summary = "projections to queries, keys and values become one matmul";
  let description = [{
    Linear layers of one input whose results reach the same attention, through whatever passes on elements
    or rows, become one layer with the weights behind one another, and slices of its result. The concatenation of parameters costs
    nothing: hydra-assign-layouts places them side by side. Weight files keep the model's names. The
    input is read once instead of three times, the gradient of the input is one matmul instead of
    three and two additions, and matmuls with few columns (keys and values of grouped queries) no
    longer run alone. *Numerics-changing*: the input's gradient is summed in another order.
  }];
  let statistics = [Statistic<"fused", "fused", "matmuls that became part of another">];
}

def FuseGateUp : Pass<"hydra-fuse-gate-up", "::mlir::ModuleOp"> {
  let summary = "gate and up projections become one matmul";
  let description = [{
    As hydra-fuse-qkv, for two linear layers of one input whose results, one of them through an
    activation, are multiplied with each other: the halves of a gated feed-forward layer.
    *Numerics-changing*: the input's gradient is summed in another order.
  }];
  let statistics = [Statistic<"fused", "fused", "matmuls that became part of another">];
}

def FuseSiblings : Pass<"hydra-fuse-siblings", "::mlir::ModuleOp"> {
  let summary = "other linear layers of one input become one matmul";
  let description = [{
    As hydra-fuse-qkv, for linear layers of one input that neither it nor hydra-fuse-gate-up is for, wherever their
    results go: the queries, keys and values that TTT learns from, and what Megalodon makes of its moving average.
    Layers whose number of columns is no multiple of 8 stay alone (behind them no part would be aligned), and so do
    those with adapters beside them. *Numerics-changing*: the input's gradient is summed in another order.
  }];
  let statistics = [Statistic<"fused", "fused", "matmuls that became part of another">];
}

def FuseAdapters : Pass<"hydra-fuse-adapters", "::mlir::ModuleOp"> {
  let summary = "the first matrices of adapters beside one input become one matmul";
  let description = [{
    As hydra-fuse-qkv, for what `hydra-lora` has put beside the projections of one input: x Aᵀ of queries, keys and
    values (or of gate and up) has as few columns as the rank, and reads the input each time. A Llama of 8 billion
    parameters, adapted by rank 16: 133.2 to 131.8 ms a step of 2048 tokens on an H200. *Numerics-changing*: the
    input's gradient is summed in another order.
  }];
  let statistics = [Statistic<"fused", "fused", "matmuls that became part of another">];
}

def FuseRope : Pass<"hydra-fuse-rope", "::mlir::ModuleOp"> {
  let summary = "rotations of heads that lie side by side become one";
  let description = [{
    Two rotary embeddings of neighbouring slices of one value, with the same angles, become one over
    the heads of both, and slices of its result: queries and keys behind hydra-fuse-qkv. One kernel
    instead of two in forward, recomputation and backward, and each angle is computed once for both.
    *Exact.*
  }];
  let statistics = [Statistic<"fused", "fused", "rotations that became part of another">];
}

def NestLoops : Pass<"hydra-nest-loops", "::mlir::ModuleOp"> {
  let summary = "what a loop carries is kept for some iterations only";
  let description = [{
    The derivative of a loop needs what every iteration was given to carry on. With `chunks` = K each
    loop becomes a loop over loops of K iterations (or the next smaller divisor of their number): the
    values that the outer one carries are kept, those between are carried again from there when the
    backward pass comes by. N / K + K copies of the carried values instead of N, for one more forward
    scan. *Numerics-changing*: gradients of what all iterations read are summed for every K first.
  }];
  let options = [ListOption<"programs", "programs", "std::string", "that will be differentiated; none: loss">,
                 Option<"chunks", "chunks", "int64_t", "1", "iterations between what is kept; 1: all is">];
  let statistics = [Statistic<"nested", "nested", "loops that became two">];
}

def Differentiate : Pass<"hydra-differentiate", "::mlir::ModuleOp"> {
  let summary = "adds the backward pass to programs";
  let description = [{
    Goes through each program backwards from its output `loss` and lets every operation that depends on a
    parameter build its vector-Jacobian product. Gradients of values used several times, and of
    parameters used several times, are summed in reverse program order; those of slices that
    make up a whole value are concatenated. A parameter without gradient gets zeros. Adds an output `grad @<parameter>` for each parameter.
    Operations may first be replaced by forms that save row statistics. *Exact* for the forward values.

    With `loss-scale` the gradients are those of the loss times the state `loss_scale` (role
    `loss_scaling`, f32), so that small ones are not lost in f16; `hydra-optimizer` divides by it.
  }];
  let options = [ListOption<"programs", "programs", "std::string",
                            "programs to differentiate (default: loss)">,
                 Option<"lossScale", "loss-scale", "bool", "false",
                        "multiply gradients by a state">];
  let statistics = [Statistic<"products", "products", "vector-Jacobian products built">];
}

def NarrowGradients : Pass<"hydra-narrow-gradients", "::mlir::ModuleOp"> {
  let summary = "gradients of parameters are rounded to bf16 where a matmul makes them";
  let description = [{
    What a matmul sums up in f32 and nothing but gradients of parameters come from, by slices and reshapes at most, is
    rounded to bf16 and widened again: `hydra-mixed-precision` then lets the matmul write bf16, and what reads gradients
    (norms, updates, sums over micro-batches and ranks) computes in f32 with 2 bytes a number instead of 4. So do
    PyTorch with autocast and JAX. Gradients that are summed up from several matmuls, by loops or by anything but
    matmuls (embeddings, norms) stay f32, and so do those of layers that `hydra-select-precision` keeps in more bits.
    `--gradients=bf16` asks for it; of ranks it asks for `hydra-round-gradients` instead. *Numerics-changing.*
  }];
  let statistics = [Statistic<"gradients", "gradients", "matmuls whose sums are rounded">];
}

def Optimizer : Pass<"hydra-optimizer", "::mlir::ModuleOp"> {
  let summary = "adds guarded updates of all parameters to differentiated programs";
  let description = [{
    Gives every parameter the state that the optimizer of its group keeps (`<name>.m`, …), and a
    program the run-time scalars `lr` and `clip` (the global norm above which gradients are scaled
    down; 0 or less for none) and the updates of all parameters. One guard, whether the norm is finite
    or without `clip` the loss, selects the new or the old value of everything that the step updates,
    state of the model too; the output `applied` says which, 1 or 0. Only applied updates count
    (`step`). Outputs `loss` and, with `clip` or a scaled loss, `grad_norm` remain.

    With `accum` = N > 1 the program becomes three. `count` sums up the labels that count, over all
    micro-batches: losses divide by a N-th of them. `accumulate` adds gradients divided by N to
    `<name>.grad`, and updates copies of the model's state (`<name>.next`). `apply` updates, and clears
    the sums. With `exchange-last` these are parts (`gradient_part`): ranks add up what their own rows give,
    and `apply` alone exchanges gradients.

    With `holds` programs also take the run-time scalar `hold`, which is added to the number that the
    guard looks at: 0 changes nothing, and with infinity a step does all of its work and updates
    nothing, the scale of a loss neither.

    Gradients of a scaled loss (`hydra-differentiate`) are divided by the scale, a power of two, before
    anything else reads them, and their norm is computed, as the guard. A step that is refused halves the scale,
    2000 applied ones after another double it, between 1 and 2^24 (Micikevicius et al., "Mixed
    precision training", 2018).

    With `ema-decay` = d or `swa-from` = N every parameter has a mean of the values that updates gave it
    (`<name>.average`, f32), which moves to the new value by a share: the larger one of 1 - d and 1 / t,
    t being the number of the update from 1, so that the first value counts no more than others; or
    1 / (t - N + 1), and 1 before update N (Izmailov et al., "Averaging weights leads to wider optima",
    2018). `norm-spike` adds the scalar `norm_spike`: where the norm is above it, the step has half of
    its learning rate. `batch-filter` adds the scalar `loss_limit`: where it is positive and the loss is above it, the step
    is refused, but counts as any other for the scale of the loss. With `sum-losses` programs of micro-batches return
    the sum of the losses of their step so far (`loss_sum`): ranks add to it one after the other, as micro-batches on
    one rank do, so that what is told has the same bits. `group-norms` adds outputs, the norm of the gradients of each group; the global norm
    then adds up squares group by group. `grad-histograms` adds, for each group, how many of its gradients
    (what is applied, before clipping) have which magnitude, as counts by powers of two
    (`hydra.count_exponents`): one more read of all gradients. Those that wait for a norm are counted by one operation,
    in one launch; others each where it is made, so that it can still be updated and given up there.
  }];
  let options = [
    ListOption<"programs", "programs", "std::string", "programs to extend (default: loss)">,
    Option<"accum", "accum", "int64_t", "1", "micro-batches per update">,
    Option<"exchangeLast", "exchange-last", "bool", "false",
           "ranks exchange gradients in the update, not in each micro-batch">,
    Option<"clip", "clip", "bool", "true", "clip gradients by their global norm">,
    Option<"holds", "holds", "bool", "false", "take a scalar that can refuse every update">,
    Option<"emaDecay", "ema-decay", "double", "0", "average parameters with this decay; 0: do not">,
    Option<"swaFrom", "swa-from", "int64_t", "0", "average parameters from this update on; 0: do not">,
    Option<"normSpike", "norm-spike", "bool", "false", "lower the learning rate of steps with large norms">,
    Option<"batchFilter", "batch-filter", "bool", "false", "refuse steps whose loss is above a limit">,
    Option<"sumLosses", "sum-losses", "bool", "false", "return the sum of the losses of micro-batches so far">,
    Option<"groupNorms", "group-norms", "bool", "false", "return the norm of the gradients of each group">,
    Option<"gradHistograms", "grad-histograms", "bool", "false",
           "return how many gradients of each group have which magnitude">,
  ];
  let statistics = [Statistic<"updates", "updates", "parameters updated">];
}

def Shard : Pass<"hydra-shard", "::mlir::ModuleOp"> {
  let summary = "parameters lie in vectors, of which each rank is to have a piece";
  let description = [{
    For `--shard=fsdp` and `zero1`, before differentiation. The parameters of an element of a stack that are
    updated and rounded alike become one parameter, a unit: a vector (rows of 1024) in which they
    lie one behind the other, with the axis of the mesh, the innermost, along which ranks will have its rows; with
    `levels`, of several, the innermost of which cuts it into the largest pieces (two where `--two-level` has made
    two of one), so that over the network go pieces of what ranks of a node exchange.
    Programs take slices of it; those that the model joins are one slice. Frozen parameters have units of their own; for
    `zero1`, which shares out what updates need, they stay as they are. Parameters outside of stacks are units
    of their own. Fewer elements than `whole-below`, or an optimizer that does not work element by
    element, and a parameter stays as it is, the same on all ranks. Gradients, moments and rounded copies
    are then those of the unit by the passes that make them, and `hydra-partition` finds what follows: a
    gather where a program reads a unit, a reduce_scatter of its gradient, an update of the rows that
    a rank has. Files know members only. *Numerics-changing* where a norm of gradients adds up squares, in
    another order.
  }];
  let options = [
    Option<"wholeBelow", "whole-below", "int64_t", "65536", "elements from which on parameters are cut">,
    Option<"frozenWhole", "frozen-whole", "bool", "false", "leave frozen parameters as they are">,
    Option<"levels", "levels", "int64_t", "1", "innermost axes along which parameters are cut">,
  ];
  let statistics = [Statistic<"units", "units", "units formed">,
                    Statistic<"parameters", "parameters", "parameters that are members of units">];
}

def Partition : Pass<"hydra-partition", "::mlir::ModuleOp"> {
  let summary = "programs of the whole batch become programs of one rank's part of it";
  let description = [{
    For a model with a mesh (`--mesh`): every rank has as many rows of the batch, and all parameters and
    state. B becomes local in shapes and stays global in values: constants, scales and divisors were
    computed from the whole batch when the model was bound. Each value is the *same* on all ranks, *rows*
    of one dimension, or a *part*, of which the sum over ranks is the value; the partition interface says
    what operations make of these (dialects/hydra/PartitionRules.cpp), one without a rule is an error.
    An `all_reduce` stands where a part is used otherwise than linearly, is returned, or meets what is the
    same, from which the sum then begins; losses divide by the labels that count on all ranks. Runs on
    programs that have everything, forward, backward and update, so that gradients of parameters are
    parts like others, summed up before the norm and the update. State of the role `gradient_part` is a part:
    it is read, added to and written without an exchange. What needs whole rows is gathered, and
    counted in the statistics. Loops exchange nothing: their bodies are written for what they are given,
    and sums over ranks wait behind them. This pass alone is data parallelism. Axes one after the other,
    outermost first. A unit that several axes cut is gathered over all of them by one `all_gather`, and its gradient summed
    up by a `reduce_scatter` for each: over the axis of the largest pieces first. *Numerics-changing*: sums
    over rows are sums of sums.
  }];
  let statistics = [Statistic<"reductions", "reductions", "sums over ranks placed">,
                    Statistic<"gathers", "gathers", "values that were gathered or dealt out">];
}

def KeepGathered : Pass<"hydra-keep-gathered", "::mlir::ModuleOp"> {
  let summary = "parameters are gathered where they are updated, and kept";
  let description = [{
    For `--shard=zero1`: what programs gather of a unit is a state that they read, in the format that they
    read it in, and the update gathers it anew from the rows that the ranks have updated. What is derived of a unit (its 8
    bits) is gathered by all programs that make it. Moments
    and the parameters in f32 are cut, and nothing is gathered forward or backward. Rounded rows that
    nothing else reads are not kept. *Exact.*
  }];
  let statistics = [Statistic<"units", "units", "units that are kept gathered">];
}

def Reshard : Pass<"hydra-reshard", "::mlir::ModuleOp"> {
  let summary = "what was gathered is not kept until it is needed again";
  let description = [{
    Where at least `between` other units are gathered between two readers of one, it is gathered again
    for the second: a layer's parameters for its backward pass. A rank then holds a few units in all; of those in 8 bits that a
    program has rounded, its own piece of each. *Exact.*
  }];
  let options = [
    Option<"between", "between", "int64_t", "2", "units gathered in between">,
  ];
  let statistics = [Statistic<"gathers", "gathers", "units gathered again">];
}

def SplitGathers : Pass<"hydra-split-gathers", "::mlir::ModuleOp"> {
  let summary = "gathers over several axes of the mesh become one over each";
  let description = [{
    What is gathered over several axes, as of units that `--two-level` cuts over nodes and inside of them, is gathered over
    the axis of the smallest pieces first: across nodes goes a rank's own piece, and inside of a node what each of its
    ranks has then. Pieces lie in memory as they are gathered, so nothing is moved in between. Which rank one is along several
    axes is computed from where it is along each. *Exact.*
  }];
  let statistics = [Statistic<"gathers", "gathers", "gathers that became one for each axis">];
}

def RoundGradients : Pass<"hydra-round-gradients", "::mlir::ModuleOp"> {
  let summary = "ranks send gradients in fewer bits than they are summed up in";
  let description = [{
    What ranks sum up of the gradient of a parameter is rounded to bf16 before it is sent, and added up in
    f32: half the bytes on the wire (of `ddp`, which sends the sums back, a quarter less). A sum counts as
    one of a gradient where a new value of a parameter, a sum over micro-batches or a gradient that is
    returned comes from it element by element, and where what ranks have added up over micro-batches is summed
    up; losses, norms and what the model itself sums up stay
    f32, and so do sums that are summed up over another axis: only pieces of them are sent. Where a matmul
    writes f32 for such a sum alone, it writes bf16. `--reduce=bf16` or `--gradients=bf16` asks for it.
  }];
  let statistics = [Statistic<"sums", "sums", "sums over ranks that are sent rounded">];
}
def BucketCollectives : Pass<"hydra-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "sums over ranks that are ready at about the same time become one";
  let description = [{
    A program sums up the gradient of every parameter over the ranks, and most are small: an exchange takes
    some microseconds however little it moves. Sums along one axis that follow each other, before any of
    them is used, are taken as one, of up to `bytes`. Their operands are joined, which costs nothing where
    an operation can write its result there; the sums are slices. For that, sums of slices that make up a
    value (the gradients of q, k and v, which one matmul takes) first become slices of one sum: CS336 small
    copies no gradient then, 0.2 ms of 490 MiB on an H200 at the limit. Sums that are summed up over
    another axis are taken together with those. *Exact*: every element is the same
    chain of adds.
  }];
  let options = [
    Option<"bytes", "bytes", "uint64_t", "16777216", "of the values of one bucket">,
  ];
  let statistics = [Statistic<"buckets", "buckets", "sums that took the place of several">,
                    Statistic<"sums", "sums", "sums that became part of another">,
                    Statistic<"joined", "joined", "sums of slices that became slices of a sum">];
}
def LowerCollectives : Pass<"hydra-lower-collectives", "::mlir::ModuleOp"> {
  let summary = "sums over ranks become exchanges and adds in the order of ranks";
  let description = [{
    Ranks move bytes, kernels add: bits then depend on neither ring, tree nor library, and a 16-bit sum is
    none. An `all_reduce` becomes an `all_to_all` of equal pieces (padded with zeros), adds from rank 0 to
    the last, and an `all_gather` of the sums; a small one an `all_gather` of everything, which every rank
    adds up: small is what sends less than `latency-bytes` more that way. Of that, parts that are read apart
    (the gradients of a bucket) are added up apart, so that the adds become pieces of updates or norms. The
    chain of adds begins with the value that the sum begins with, if there is one; where pieces are
    exchanged rank 0 has added it before. What is summed up over one axis, and that over another (GPUs of a
    node, then nodes), is exchanged in two levels: over the second axis go the pieces of which a rank has the
    sum over the first, one N-th of the bytes.
    A `reduce_scatter` becomes an `all_to_all` and adds. Where one `all_to_all` would receive more than
    `slice-bytes`, pieces are exchanged and added up in equal slices, so that what is received never takes more
    memory than that: TTT 47B has units of 4 GB of gradients in f32. What goes along another axis of a tensor than the
    first is moved there, since in memory pieces lie one after the other. *Exact*.
  }];
  let options = [
    Option<"latencyBytes", "latency-bytes", "uint64_t", "0",
           "bytes that a rank sends in the time that one more exchange takes">,
    Option<"sliceBytes", "slice-bytes", "uint64_t", "268435456",
           "what a rank receives at most by one exchange of gradients; 0: no bound">,
  ];
  let statistics = [Statistic<"exchanges", "exchanges", "sums of pieces that ranks exchange">,
                    Statistic<"gathers", "gathers", "sums of what all ranks gather">,
                    Statistic<"levels", "levels", "sums over a second axis that only pieces go over">,
                    Statistic<"slices", "slices", "exchanges beyond the first of their sum">];
}

def SelectPrecision : Pass<"hydra-select-precision", "::mlir::ModuleOp"> {
  let summary = "which layers multiply in more bits than the precision policy says";
  let description = [{
    For `--layer-precision`, before derivatives are built, which hand on what it writes: `compute = f32` or
    `compute = tf32` on matmuls by a parameter that a rule names (`lm_head:fp32`, `layers.*.router:tf32`), or
    by what is made of such parameters by moves alone. hydra-mixed-precision leaves their operands in f32. Of
    rules that name the same layer the first holds; one that changes no layer is an error. *Numerics-changing*.
  }];
  let options = [
    ListOption<"rulesOption", "rules", "std::string", "PATTERN:FORMAT, with fp32 or tf32">,
  ];
  let statistics = [Statistic<"layers", "layers", "layers selected">];
}

def SelectQuantized : Pass<"hydra-select-quantized", "::mlir::ModuleOp"> {
  let summary = "which linear layers multiply 8-bit operands, and in which formats";
  let description = [{
    For `--precision=fp8`, before derivatives are built, which hand on what it writes: on linear layers of
    parameters, `quantize` (f8E4M3FN, of operands) and `quantize_gradient` (f8E5M2 with the format `hybrid`,
    f8E4M3FN with `e4m3`). Left out are layers of parameters that a pattern of `keep` names, without patterns,
    or with the word `default` among them, those of the first and of the last element of a stack, of parameters
    outside of stacks (embeddings, heads), and routers: what gives the scores by which rows are chosen (`hydra.top_k`, `hydra.route`,
    `hydra.compact`); weights with a dimension below `least`; and all of programs that read on.
    Bodies of scans are no programs: their matmuls stay. *Numerics-changing*, by what
    `hydra-quantize-matmuls` does with it.
  }];
  let options = [
    Option<"format", "format", "std::string", "\"hybrid\"", "hybrid or e4m3">,
    ListOption<"keep", "keep", "std::string",
               "patterns over names of parameters whose layers are left out; none: no other">,
    Option<"least", "least", "int64_t", "64", "the smallest dimension of a weight">,
  ];
  let statistics = [Statistic<"layers", "layers", "linear layers selected">];
}

def QuantizeMatmuls : Pass<"hydra-quantize-matmuls", "::mlir::ModuleOp"> {
  let summary = "matmuls of linear layers on numbers of 8 bits";
  let description = [{
    For `--precision=fp8`, behind hydra-mixed-precision: of what hydra-select-quantized has selected, y = x wᵀ
    and the matmuls of its derivative, dx = dy w and dw = dyᵀ x, become `hydra.quantized_matmul`. An operand is
    divided by a power of two (`hydra.quantization_scale` of its largest magnitude, which ranks of a mesh
    compare) and rounded to 8 bits, once however many matmuls read it, but for parameters that are gathered
    again for the backward pass; a copy of those that are read transposed is made once too. Largest magnitudes
    of rows are row-wise, so that they come out of the kernel that makes the operand. With the scaling `row`,
    every row of what is multiplied has a scale of its own, so that one large row takes no precision from
    others: what is read transposed is transposed before it is rounded, and ranks compare nothing. With `block128`
    activations and gradients have a scale for each 128 neighbours along what is summed over, rounded apart for both
    ways of reading, and weights, which are the second operand, one for each block of 128 by 128, so that what is
    read transposed is the same numbers (DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.3.2). Sizes that
    are no multiple of 128 get zeros before they are rounded; what is multiplied is without them. A matmul stays
    as it is where a dimension is no multiple of what the target's library wants (16 on GPUs). On an H200 the
    matmuls of CS336 2.7B reach 1,205 TFLOP/s instead of 650, and half the bytes of activations are kept that
    only matmuls read.

    With `amax=delayed` programs that train make scales of the largest magnitudes of the last `history` steps, which
    are the state `fp8_amax`, one row for each value; other programs have no state to write and go on as before. A
    scale is then known before the tensor: the kernel that makes a value writes its 8 bits too, instead of bf16 that
    another kernel reads once the largest magnitude is found, and ranks compare all largest magnitudes of a step
    in one exchange when it updates, however many micro-batches it has. `AmaxHistory.h` has the rules. *Numerics-changing*.
  }];
  let options = [Option<"scaling", "scaling", "std::string", "\"tensor\"", "what has a scale: tensor, row or block128">,
                 Option<"amax", "amax", "std::string", "\"current\"",
                        "of which step a scale of a tensor is: current, or delayed for those before">,
                 Option<"history", "history", "int64_t", "16", "steps that are remembered for delayed scales">,
                 Option<"accum", "accum", "int64_t", "1", "micro-batches of a step: their gradients are so many times as large">,
                 Option<"strict", "strict", "bool", "false", "fail if no matmul is quantized">];
  let statistics = [Statistic<"matmuls", "matmuls", "matmuls of 8-bit operands">,
                    Statistic<"tensors", "tensors", "values quantized">,
                    Statistic<"left", "left", "selected matmuls of a shape that the target does not take">];
}

def GatherQuantized : Pass<"hydra-gather-quantized", "::mlir::ModuleOp"> {
  let summary = "weights that are multiplied in 8 bits are gathered in 8 bits";
  let description = [{
    Behind hydra-quantize-matmuls, for `--shard=fsdp`, and for `zero1` with delayed scales. A program that reads a unit (hydra-shard) in 8
    bits alone gathers those: each rank rounds its piece, and half the bytes of bf16 go over the wire, a quarter of f32.
    Rounding looks at an element and its scale, and a scale that remembers earlier steps is known on all
    ranks. One of the present magnitudes is made of the largest of each piece, which ranks compare, in one exchange for all
    weights of a program; a largest number is the same in any order. So bits are those of ranks that gather first and round
    then. Which weight an element belongs to, and with it the scale, depends on its place in the unit: it is told from
    the number of its block, the largest that all weights begin at a multiple of (1024 elements where their
    sizes are). What is read transposed is transposed behind the gather, as before.

    Of scales of rows or blocks, pieces begin and end within these. Ranks tell each other the largest magnitudes of
    *segments*, the neighbours that share a scale wherever a piece begins (128 elements of blocks, up to 1024 of rows: 1.6 % or
    0.2 % of the bytes of 8 bits), in one exchange where a program begins, and each makes all scales of these. Blocks are read
    transposed with the same scales, so that is half the bytes of bf16 however often a unit is gathered. Scales of rows are those of
    columns where a weight is read transposed, so there are two forms in 8 bits. One gather for both would be more bytes than
    bf16; but where `between` other units are gathered in between, as for hydra-reshard, which then finds the two apart,
    each form is gathered where it is read: two bytes an element are left of four. Of columns ranks tell each other largest
    magnitudes too (ColumnScales).

    A unit stays as it is where anything else reads some of it too: layers that are kept in bf16 beside others of the
    same element of a stack, weights that are read by rows and by columns of one gather; where segments are too short for fewer
    bytes; and scales that are made behind the first gather. They are counted. *Exact.*
  }];
  let options = [
    Option<"between", "between", "int64_t", "2",
           "units gathered in between two readers of one that is gathered again; 0: none is">,
  ];
  let statistics = [Statistic<"units", "units", "units that are gathered in 8 bits">,
                    Statistic<"apart", "apart", "units that are gathered again for the backward pass">,
                    Statistic<"left", "left", "units of 8-bit operands that are gathered as they are">];
}

def KeepQuantized : Pass<"hydra-keep-quantized", "::mlir::ModuleOp"> {
  let summary = "weights in 8 bits are state, written where their parameters are updated";
  let description = [{
    Behind hydra-quantize-matmuls with `amax=delayed`. In step t a weight is divided by a scale that remembers the weights
    of the steps before t, so the update that makes the weight knows it: the group of the optimizer writes the 8 bits
    beside the parameter, and finds the largest magnitude of the new values, which the next update is to remember (along
    blocks of 256 numbers, where the optimizer goes element by element). No
    program of a step then reads the parameter, or its copy in bf16, to round it: 2 bytes a parameter and micro-batch
    less, and as much where nothing else in a step reads that copy (hydra-keep-rounded then makes none). Both are state
    of the role `derived`, which is in no checkpoint: the program `derive` makes it of parameters and history
    when something else has written these. What the backward pass reads transposed is a copy of the same bytes in every
    step, as before: an update that goes along rows would write single bytes.

    Of a unit that is gathered in 8 bits (hydra-gather-quantized) the state is what a rank has of it, each block by the scale
    of its weight, and ranks compare what they find of all weights in one exchange.

    A weight whose operand is not one parameter, or several that are joined, each whole, nor all of such a unit is rounded in every
    step: adapters, and what shares a unit with other weights; so is one that some program of the run leaves as it is, since its
    scale moves on, and so are all with `--rounded-copies=step` or `layer`. *Exact.*
  }];
  let statistics = [Statistic<"kept", "kept", "weights that are kept in 8 bits">,
                    Statistic<"left", "left", "weights that are rounded in every step">];
}

def MixedPrecision : Pass<"hydra-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "matmuls and attention on numbers of fewer bits";
  let description = [{
    For `--precision`. With the policy `bf16`, matmuls and attention read their operands rounded to
    bf16, sum in f32 and yield bf16; everything else (the residual stream, norms, softmax, losses,
    gradients of parameters, the optimizer, parameters themselves) stays f32. A value is rounded once,
    where it is made, so that the cast becomes part of the kernel that makes it; moves and rotations
    between two matmuls work on bf16, and what else reads a rotation that a matmul reads sees the same
    rounded numbers. What a loss, an update or an output reads comes out of a
    matmul unrounded, but for what the program itself rounds first (`hydra-narrow-gradients`), and the logits of
    `hydra.linear_cross_entropy` with `round-logits`, which are made and read inside of it. Halves the bytes of activations between matmuls, and makes matmuls as fast
    as the target's bf16 units. With `pure_bf16` also parameters, their moments, gradients and the
    residual stream are bf16; statistics, sums and losses stay f32: 8 B a parameter instead of 16.
    `fp8` is `bf16` here; hydra-quantize-matmuls goes on from there.
    `f16` is `bf16` with three more bits of precision and a smaller range: the loss is scaled. With
    `tf32` all values stay f32, and matmuls round their operands to tf32 as they read them.
    models.md section 1.2. *Numerics-changing.*
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"bf16\"", "tf32, bf16, f16, pure_bf16 or fp8">,
    Option<"reduced", "reduced-reduction", "bool", "false",
           "matmuls may add partial sums in the type of their operands">,
    Option<"roundLogits", "round-logits", "bool", "false",
           "logits that only a loss reads are rounded too">,
  ];
  let statistics = [Statistic<"matmuls", "matmuls", "operations that now read rounded operands">,
                    Statistic<"casts", "casts", "casts placed">];
}

def WidenLate : Pass<"hydra-widen-late", "::mlir::ModuleOp"> {
  let summary = "narrow numbers are widened by the kernels that compute with them";
  let description = [{
    Matmuls make bf16 (or f16). Where another operation computes with the numbers in f32, but they are moved first or
    read by a loop as a sequence, the widened form was stored: six bytes a number to write it and four for each reader.
    Behind this pass moves move the narrow numbers, loops read them, and the cast stands in front of what computes,
    in whose kernel it costs nothing. Not where the body of a loop has a reader that takes no cast into its kernel: each
    iteration would have a launch more. *Exact.*
  }];
  let statistics = [Statistic<"moves", "moves", "moves of narrow instead of widened numbers">,
                    Statistic<"sequences", "sequences", "sequences that loops read narrow">];
}

def ChunkLinearCE : Pass<"hydra-chunk-linear-ce", "::mlir::ModuleOp"> {
  let summary = "linear + cross entropy over chunks of rows";
  let description = [{
    Writes `hydra.linear_cross_entropy` as matmuls and row-wise operations over chunks of rows, so
    that never more than one chunk of logits exists; with `saving` the same sweep gives the
    gradients with respect to the input and the weight. Logits are f32, or what `rounded_logits` has. Their gradient
    stands in front of all that looks at losses, so that one group can read them and make both. By default a chunk has at most 64 MiB of
    logits, and 1 GiB on a GPU (512 MiB with rowwise or every=N recomputation), where every chunk reads
    and writes the gradient of the head once more; but never are there more than 1024 chunks, or 4096 of a
    size that was asked for. The loss of B S = 4096 rows over V = 50304 then needs
    64 MiB instead of 786 MiB.

    A GPU multiplies by 50257 columns at a seventh of the rate of 50304: there a weight in 16 bits whose
    classes are no multiple of 8 gets rows of zeros up to a multiple of 64, whose scores weigh nothing.
    *Numerics-changing* with the size of chunks: the weight gradient is summed over chunks.
  }];
  let options = [Option<"chunk", "chunk", "int64_t", "0", "rows of a chunk; 0: by memory">,
                 Option<"megabytes", "megabytes", "int64_t", "64", "MiB of logits of a chunk">,
                 Option<"classMultiple", "class-multiple", "int64_t", "1",
                        "multiple to which classes of 16-bit weights are padded">];
  let statistics = [Statistic<"chunks", "chunks", "chunks written">];
}

def LowerLosses : Pass<"hydra-lower-losses", "::mlir::ModuleOp"> {
  let summary = "losses, norms and reductions that are not row-wise become operations that are";
  let description = [{
    Writes `hydra.cross_entropy` and its derivative as a log-sum-exp and a loss for every row, and
    `hydra.global_norm` as a sum of squares for every tensor, `hydra.top_k` as comparisons of all pairs of a
    row, `hydra.take_rows` of several numbers a row as lookups that are added; each then is part of a group
    that reads the logits or the tensor once. What depends on all rows (the number of labels that count, the
    clip factor) becomes a sum over rows and a few scalars between groups. Reductions over dimensions
    in the middle become a transposition and a reduction over the last. A sum over parts that are joined for it alone,
    as gradients are for the bias of several projections in one, becomes the sums of the parts, each in the kernel
    that makes the part. What `hydra.irfft` transforms
    becomes 0 in the imaginary parts of its ends, whatever they are, unless they are known to be 0: cuFFT reads
    them at some lengths. *Numerics-changing*: sums go in another order than in the operation they replace.
  }];
  let statistics = [Statistic<"lowered", "lowered", "operations written out">];
}

def SimplifyMoves : Pass<"hydra-simplify-moves", "::mlir::ModuleOp"> {
  let summary = "elements are not moved where a smaller move or arithmetic on indices gives the same";
  let description = [{
    A slice of padded rows becomes padding around a slice of the rows, which is a view: one copy instead of two where
    rows are shifted, and then joined with others (the taps of a causal convolution). Padding around padding
    becomes one. Rows that are scaled in several ways and then padded, the derivative of such taps, are padded first
    and scaled where they are read, so that zeros around them are scaled too; rows that arithmetic reads padded in
    several ways are padded once, and shifts are views. Arithmetic of which a slice alone is read is computed for
    that slice. A sum of up to 8 slices along a dimension between others is
    their sum number by number, instead of one of transposed numbers. A broadcast that repeats what indices and
    constants alone say along some dimensions between or around others, which no group can do while it computes,
    becomes the same arithmetic for all elements, inside the groups that read it: the powers of Megalodon's moving
    average read no exponents from memory. *Exact on
    CPUs*.
  }];
  let statistics = [Statistic<"simplified", "simplified", "operations replaced">];
}

def ReuseNormStats : Pass<"hydra-reuse-norm-stats", "::mlir::ModuleOp"> {
  let summary = "the mean and the deviation of a row are computed once";
  let description = [{
    Where plain operations compute the mean over a row, or (mean of squares + eps)^(-1/2), and a norm
    of the same rows with the same eps exists, the norm saves these numbers and the others read them:
    one pass over the rows less, two for a layer norm. Derivatives of norms that a model writes out
    (the inner update of TTT) are the case it is for; derivatives that hydra-differentiate builds
    read saved statistics anyway. Several norms of the same rows share theirs. *Exact on CPUs*.
  }];
  let statistics = [Statistic<"reused", "reused", "statistics that are read and no longer computed">];
}

def JoinWeightGradients : Pass<"hydra-join-weight-gradients", "::mlir::ModuleOp"> {
  let summary = "the gradient of a weight that is used several times is one matmul";
  let description = [{
    A weight that k recursions multiply with has a gradient g1ᵀ x1 + … + gkᵀ xk. This pass makes it one matmul, of
    the g below each other and the x below each other: k - 1 launches and tails less, and of 2 k + 1 times the
    bytes of the gradient that are written and read, one. Operands are made where the concatenations are (hydra-to-plan), so
    nothing is copied; where an operand cannot be (an input, a view, a part of another concatenation), the sum
    stays. Matmuls of one sum may also differ in their numbers of rows.

    Operands are one value then, which lives from the first part to the last matmul. What is live at the peak of a
    program, counted before groups are formed, may grow by `percent`; a sum that would make it more stays. With
    rowwise recomputation or layers computed again, which are to save memory,
    the pass does not run. Work on gathered rows (`hydra.compact`) ends where these end, which is not known before
    the step runs: of joined rows in each part elsewhere (hydra-skip-rows). Kernels that read all numbers of rows can do
    that, so terms of 16-bit operands with an f32 sum are joined where the target has warpgroups (`wgmma`), and other
    gathered rows stay apart. Of HYDRA's `profile-100M-as-run`, 4×1024, with dynamic depths 48 matmuls become 8, 0.27 of
    9.1 ms on an H200. *Numerics-changing*: rows are summed in another order.
  }];
  let options = [Option<"percent", "percent", "int64_t", "1",
                        "by how much the bytes that are live at the peak may grow">];
  let statistics = [Statistic<"weights", "weights", "gradients that are one matmul">,
                    Statistic<"matmuls", "products", "matmuls that they were">];
}

def FuseEpilogues : Pass<"hydra-fuse-epilogues", "::mlir::ModuleOp"> {
  let summary = "a library's matmuls apply what follows them";
  let description = [{
    A GELU that follows a matmul in bf16 or f16 becomes part of it, where the target lists `gelu` among the
    `epilogues` of its library: it is applied to the sums before they are rounded, one read of B S F
    elements and a launch less; its argument is written beside it where the backward pass needs it. Biases
    are part of `hydra.linear` already. Up to `few-rows` rows whose argument nothing else needs stay apart: their
    matmuls are kernels of the backend, and the GELU belongs to what reads it (hydra-fuse-operands). Behind
    hydra-recompute, which may recompute the GELU from its argument. What cuBLASLt also has and does not pay is in docs/laboratory.md. *Numerics-changing*.
  }];
  let options = [ListOption<"epilogues", "epilogues", "std::string",
                            "what the library's matmuls can apply: gelu">,
                 Option<"fewRows", "few-rows", "int64_t", "0",
                        "up to so many rows matmuls are no library's where nothing follows them">];
  let statistics = [Statistic<"fused", "fused", "operations that became part of a matmul">];
}

def QuantizeParts : Pass<"hydra-quantize-parts", "::mlir::ModuleOp"> {
  let summary = "what is joined to be rounded to 8 bits is rounded before it is joined";
  let description = [{
    Behind hydra-quantize-matmuls. The gradients of gate and up are joined, since one matmul reads both; so each was
    written in 16 bits, and a sweep over them found their largest magnitudes and rounded them. Where all parts of a
    joined value are made element by element, the ways from it to `hydra.quantize` and to `hydra.reduce_max` along the
    axis of the parts go over to the parts: bytes are joined, and the largest of the largest numbers is taken. Then the
    group that makes the parts rounds them, and the joined value is neither written nor read: 4 bytes a number. A scale that is
    made of the joined value itself (`amax=current`) waits for all of it, so only its largest numbers are found
    earlier. Weights that are cast and joined stay, as others know them by that. *Exact.*
  }];
  let statistics = [Statistic<"values", "values", "joined values whose parts are rounded or compared">];
}

def QuantizeWeights : Pass<"hydra-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "weights that nothing changes are held as integers of 8 or 4 bits, with scales";
  let description = [{
    For `--mode=generate --weight-format=int8`, behind hydra-mixed-precision. A token costs reading every weight once:
    2 bytes a number in bf16, 1 in i8. A parameter [N, K] that linear layers multiply with, alone or joined with others,
    and whose K is a multiple of 16, becomes integers from -127 to 127 with a state of role `scale`, f32 [N], the largest
    magnitude of each row divided by 127. Numbers are rounded when they are read from a file or drawn, so neither memory
    nor checkpoints of the plan have others. A layer becomes `hydra.scaled_linear`, which multiplies the integers as they are and
    scales and rounds each sum once, with its bias; of more than 16 rows, which prompts have, a matmul reads the integers in the format of its
    input, widened in each call, and its sums are scaled behind it, so the numbers are the same. What also looks rows of it up (a head that is the table)
    scales these. With `bits=4`, for `--weight-format=int4`, K is a multiple of 32, and groups of 32 neighbours in a row become numbers of 4
    bits, two in a byte, with a scale of bf16 in [N, K/32] (`support::quantizeGroup`). A matmul of many rows multiplies what integers
    times scales are, which its format has exactly. Left out are parameters that patterns of `keep` name, that are only looked up, that scans or experts
    multiply with, that programs change, and all that anything else reads. *Numerics-changing.*
  }];
  let options = [
    ListOption<"keep", "keep", "std::string", "patterns over names of parameters that stay as they are">,
    Option<"bits", "bits", "int64_t", "8", "bits of an integer: 8 or 4">,
  ];
  let statistics = [Statistic<"held", "held", "parameters that are held as integers">,
                    Statistic<"matmuls", "matmuls", "linear layers that multiply with them">];
}

def HoldRounded : Pass<"hydra-hold-rounded", "::mlir::ModuleOp"> {
  let summary = "parameters that nothing changes are held as matmuls round them";
  let description = [{
    A parameter in f32 that nothing changes, since no program has gradients or it is `frozen`, and of which matmuls
    read a rounded copy, is cast in every call: 10 bytes a parameter and call instead of 2, and a token of a decoding
    program costs little else. If all programs round a parameter to the same format, it is held in that format, rounded
    when it is loaded, and checkpoints have the rounded numbers. What gathers rows of it (a table that is also the
    head) reads rounded rows. *Numerics-changing* there; else *exact*.
  }];
  let statistics = [Statistic<"held", "held", "parameters that are held rounded">];
}

def KeepRounded : Pass<"hydra-keep-rounded", "::mlir::ModuleOp"> {
  let summary = "rounded parameters are state, written where parameters are updated";
  let description = [{
    A cast of a parameter (or of parameters that are joined) reads it in every step, 6 bytes a parameter.
    Behind this pass its result is a state that every program reads, and that the programs which update
    the parameter write beside it: 2 bytes, in the group of the update, and no kernel of its own. Programs
    that only read (evaluation, generation) compute no casts of these; what they alone round has no copy. A frozen parameter's is written once, with it. The state is no part of
    checkpoints; what writes a parameter from outside writes it too. Without it (`--rounded-copies=step`) the
    copies are made in every step, and kept until its backward pass; so it is with rowwise recomputation,
    which is to save memory, unless asked for. *Exact.*
  }];
  let statistics = [Statistic<"kept", "kept", "parameters that are kept rounded too">];
}

def SplitMaster : Pass<"hydra-split-master", "::mlir::ModuleOp"> {
  let summary = "parameters are held in two halves: the bf16 that matmuls read, and the rest";
  let description = [{
    A parameter in f32 and its copy in bf16 are 6 bytes, of which an update reads 4 and writes 6. Behind this pass
    (`--split-master`) the parameter is held in bf16, beside it a state of 16 bits has what that leaves out, and
    `hydra.join_master` makes of both every number of f32 to the bit: 4 bytes, read and written. What reads the bf16
    copy, or casts to it, reads the parameter as it lies; whatever else reads it joins the halves in its own kernel.
    Of all parameters in f32 that a program updates, but those of less than two dimensions, which are small and read
    in f32. Checkpoints and files of weights have the numbers in f32, as without it.

    *Numerics-changing*: the bf16 of a number that is as near to two of them is the one farther from zero, since of
    the even one the number could not be made again. One number of some 65,000 is such.
  }];
  let statistics = [Statistic<"split", "split", "parameters that are held in two halves">];
}

def Recompute : Pass<"hydra-recompute", "::mlir::ModuleOp"> {
  let summary = "values that are cheap to recompute are not kept for the backward pass";
  let description = [{
    A value that is used soon, and once more only after a long wait, need not be kept when one pass
    over values that are kept anyway recomputes it: its operations are copied to where the wait ends. Always for
    rotary positions, whose input stays in memory beside the values of the same fused projection: 2 B S
    D elements a layer. With `in-place` not where that input is read by nothing else, the result can take its
    place (hydra-to-plan) and all that read it take it there: it is kept, in the bytes that are kept
    anyway. Rotations of neighbours are such, of halves of a head not. With `rowwise` also for norms and
    gated activations, another 2 B S D + B S F: at CS336 xl a third of all activations, for one more pass over memory each.

    With `every` = N, all that the backward pass needs of each N-th layer (0, N, …) is recomputed from
    the layer's input, just before it is needed; what nothing needs is not replayed. With `layers` = K these
    are K layers, spread evenly; what the last one keeps is needed at once, and is kept. Takes the marks
    that hydra-unroll-layers has put at the beginning of layers, and removes them.

    With `copies` the rounded copy of a parameter that a layer's forward pass multiplies with is not kept for
    its backward pass, but made again there, from the parameter: 2 bytes a parameter less, for 6 more of
    traffic. *Exact on CPUs*.
  }];
  let options = [
    Option<"light", "light", "bool", "true", "rotary positions">,
    Option<"inPlace", "in-place", "bool", "false", "keep what can take the place of its operand">,
    Option<"rowwise", "rowwise", "bool", "false", "also norms and gated activations">,
    Option<"every", "every", "int64_t", "0", "replay each N-th layer; 0: none">,
    Option<"layers", "layers", "int64_t", "0", "replay so many layers; 0: none">,
    Option<"copies", "copies", "bool", "false", "round parameters again in the backward pass">];
  let statistics = [Statistic<"recomputed", "recomputed", "values recomputed">];
}

def FormFusions : Pass<"hydra-form-fusions", "::mlir::ModuleOp"> {
  let summary = "row-wise operations become groups, each of them one kernel";
  let description = [{
    Goes through a program in order and lets every row-wise operation join the groups that compute its
    operands, or that read a tensor which it reads too, when all of their operations fit one domain
    of rows and columns (RowForms.h) and nothing outside uses a result of these groups yet. It does not where a
    broadcast would have to be in memory for it, in a shape of that domain, and more bytes be moved than apart. A group
    (`hydra.fused`) stands where its last member stood. Constants, index tensors, reshapes and
    broadcasts get a copy in each group that needs them. Inner values never reach memory: of SwiGLU's
    8 + 11 passes over [B, S, F] in forward and backward 3 + 5 remain. Equal groups have equal
    bodies, so that one kernel serves all layers. *Exact on CPUs*.
  }];
  let options = [
    Option<"single", "single", "bool", "false", "every operation is a group of its own">,
    Option<"buffers", "buffers", "int64_t", "24", "tensors that a group reads and writes at most">,
  ];
  let statistics = [Statistic<"groups", "groups", "groups formed">,
                    Statistic<"operations", "operations", "operations in groups">];
}

def PlaceOptimizer : Pass<"hydra-place-optimizer", "::mlir::ModuleOp"> {
  let summary = "updates right behind their gradients";
  let description = [{
    Moves the update of a parameter directly behind its last gradient and the last read of its old
    value, so that the gradient's bytes are free for the next one. With `--no-clip` all but a few
    gradients never exist at a time: for AdamW in fp32 that saves up to 4 bytes a parameter. A clip
    by the global norm needs every gradient first, and then nothing moves. *Exact.*
  }];
  let statistics = [Statistic<"placed", "placed", "updates that were moved">];
}

def AssignLayouts : Pass<"hydra-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "reshapes, transposes, slices and broadcasts become views or explicit copies";
  let description = [{
    Marks shape operations as views (`hydra.view`) of the buffer of their operand, and puts a
    `hydra.copy` where strides allow no view or a consumer does not take the one it would get. Saves
    one pass over memory for every reshape and transposition: 8 B S D bytes a layer for the heads of
    each of q, k and v. Concatenations of parameters are views as well: the parameters are placed
    side by side. Loops whose bodies are groups alone cut sequences where these lie, and all loops those that
    repeat numbers, which copies would make larger. Groups of a program take
    numbers that repeat along the last dimension, as those of a group of channels, as they are. Each remaining copy
    is in the program to be seen. With `views=false`, the form of
    `-O0` and `--disable-pass`, every shape operation copies; a chunk of a sequence, which a loop hands
    to its body with strides, is still copied for those that take none. *Exact on CPUs*.
  }];
  let options = [
    Option<"useViews", "views", "bool", "true", "let results be views of operands">,
  ];
  let statistics = [Statistic<"views", "views", "results that need no bytes">,
                    Statistic<"copies", "copies", "copies that remain">];
}

def Schedule : Pass<"hydra-schedule", "::mlir::ModuleOp"> {
  let summary = "an order of operations with a low peak of live bytes";
  let description = [{
    Keeps the given order, but runs an operation as soon as it can where that frees more bytes than
    it makes (weight gradients, updates); kept only if the peak falls. *Exact.*
  }];
  let statistics = [Statistic<"reordered", "reordered", "programs put into another order">];
}

def SkipRows : Pass<"hydra-skip-rows", "::mlir::ModuleOp"> {
  let summary = "work on gathered rows ends where they end";
  let description = [{
    What reads rows that `hydra.compact` has gathered works on static capacity, of which the
    rest is zeros. This pass finds matmuls and row-wise groups behind `hydra.take_rows` of whose
    results nothing reads that rest (the way back names the active rows; sums over rows
    leave out zeros), moves them side by side and marks them; hydra-to-plan makes a switch over the
    number of rows of each run, in eighths of the capacity, decided on the device. A recursion that a
    third of the tokens take costs three eighths of its matmuls. Where the target's backend has kernels that
    read the number by themselves, hydra-expand-kernels gives up the switch, and it costs a third. A sum over joined rows
    (hydra-join-weight-gradients) ends in each part where its rows do: in a plan it is a term for each part, one behind
    the other, of which hydra-expand-kernels makes one launch. Without the pass (`--routing=masked`) the
    same values come from dense arithmetic. *Numerics-changing*: matmuls of other shapes may sum in
    another order.
  }];
  let statistics = [Statistic<"skipping", "skipping", "operations that follow the number of rows">];
}

def ToPlan : Pass<"hydra-to-plan", "::mlir::ModuleOp"> {
  let summary = "values become buffers, operations become steps";
  let description = [{
    Replaces the model by a `plan.module`: a persistent buffer for every parameter and state,
    transient ones for other values, a program per entry. Operations lower themselves through the
    plan-lowering interface. An operation writes its result directly into the bytes
    of the variable it updates, of the concatenation, the padding or the copy that it would be moved to, itself or
    transposed, or of an operand that dies there, where that is proven to change nothing that is still read. Others
    read it there too, where they take it as it lies and the whole, which then lives as long, is at most three times
    as large. An operand that dies may be a part of something that lives on, such as queries beside values, where the
    result is made of it alone. A copy that would lie as what it is a copy of takes its bytes. Equal groups share a
    kernel. *Exact.*
  }];
  let dependentDialects = ["::hydra::plan::PlanDialect"];
  let statistics = [Statistic<"steps", "steps", "steps written">,
                    Statistic<"inPlace", "in-place", "results written over an operand">,
                    Statistic<"kernels", "kernels", "different kernels">];
}

def AddProducts : Pass<"hydra-add-products", "::mlir::ModuleOp"> {
  let summary = "a matmul adds to the tensor that its product would be added to";
  let description = [{
    For libraries that add an f32 tensor to the sums of a matmul before they store them. Where a kernel does nothing
    but add two f32 tensors, one of which a matmul makes for it alone, and writes the sum over the other, which
    nothing touches between the two, the matmul does so: a launch less, and the product is neither stored nor
    read. Up to `few-rows` rows are left alone: their matmuls are kernels of the backend, which add to nothing. The
    parts of an average by chunks are added like that. *Exact on CPUs*; the library may choose another algorithm.
  }];
  let options = [Option<"fewRows", "few-rows", "int64_t", "0", "up to so many rows matmuls are no library's">];
  let statistics = [Statistic<"added", "added", "launches that matmuls took in">];
}

def BatchCopies : Pass<"hydra-batch-copies", "::mlir::ModuleOp"> {
  let summary = "copies and fills that do not need each other become one launch";
  let description = [{
    For GPUs, where copies and fills are launches too, most of them shorter than it takes to begin one. Of those
    of a program that can run at the same place, because nothing between that place and theirs stands in an
    order with them, as many as a launch has arguments for become neighbours and are marked; hydra-expand-kernels
    makes one launch of each such batch, with blocks for each. Elements decide whether two stand in an order,
    not bytes from the first to the last: the parts of a concatenation of columns are apart. What moves more
    than 1 MiB runs at most 16 blocks earlier or later, anything else 256. What hydra-assign-streams lets run
    beside the main stream is not joined with what that does, nor updates with what is made of parameters:
    one stream would wait for the other. Moments are left alone unless they
    stay on the device: hydra-offload-moments fetches them one after the other. *Exact.*
  }];
  let options = [Option<"takeMoments", "take-moments", "bool", "false", "moments, too: they stay on the device">];
  let statistics = [Statistic<"batched", "batched", "copies and fills that others took in">];
}

def FuseOperands : Pass<"hydra-fuse-operands", "::mlir::ModuleOp"> {
  let summary = "matmuls of few rows, and attention over slots, compute what they read";
  let description = [{
    For GPUs whose multiprocessors copy (`bulk_copies`), where a token is a chain of short launches. The group that makes the few rows which the next
    step multiplies (a norm behind a sum, a gated activation) becomes part of that matmul: each block computes all rows
    for itself, from the second cache, while the first of its weights arrive, and the first block stores what else
    the group yields, and the rows if something else reads them. A layer of a Llama has three launches less of ten for one token.
    Attention over slots computes its queries and keys: what norms and rotations in front of it make and nothing else
    reads, each block for its heads, while it waits for what lies in slots. That is one or two launches less, of a model with norms of heads four.

    Asks the backend of the module's target (dialects/plan/KernelExpansion.h), whose kernel it is: it takes groups that
    do not gather, that write over nothing which they or the step behind them read, and whose operands a block
    reads in about the time of a launch. Marks the launch; hydra-expand-kernels writes the kernel. *Numerics-changing*: sums along
    rows go in another order.
  }];
  let dependentDialects = ["::hydra::plan::PlanDialect"];
  let statistics = [Statistic<"fused", "fused", "launches that steps behind them took in">];
}

def FuseUpdates : Pass<"hydra-fuse-updates", "::mlir::ModuleOp"> {
  let summary = "gradients of matrices are used where they are summed";
  let description = [{
    For GPUs with matmuls of warpgroups (`wgmma`). The gradient of a matrix that only updates read (an optimizer's group, with
    the guard and the copy in bf16 or in 8 bits) is not stored: the matmul that sums it, of operands of 16 or of 8 bits with a
    scale each, gives each of its numbers to the group from registers. Of AdamW that is 26 bytes for a parameter instead of 34, which
    memory moves while tensor cores work on the next tile. With a clip, accumulation, ranks, or a scaled loss something else reads gradients, and
    no update is fused.

    So are sums that only another group reads, such as what flows back through a layer to a gated activation, whose derivative then takes it
    from registers, beside what it reads of the forward pass. Results may be parts of longer rows. Sums are rounded as they would have been to be stored.
    The matmul waits for the group, or, where it cannot (an update of the weight that it reads stands between), the group comes early.

    Asks the backend of the module's target (dialects/plan/KernelExpansion.h), whose kernel it is. It takes groups that work number by
    number; they may find the largest number of each of their rows, as `hydra-keep-quantized` does for the history. Rows of a matrix may
    be several parameters (gate and up, or queries, keys and values), each a multiple of 64 rows, that one group works on. Gradients of 8 bits
    that were transposed for a library are read as they were made, and the copy goes. Marks the matmul, with the launches right behind it, and
    hydra-expand-kernels writes the kernel.
    It is fused where that is faster by the target's rates: a turn of tiles costs as much for one block as for all, so matrices of few tiles
    stay apart (UpdateSteps.cpp). Moments on the host (`--offload=optimizer`) stay apart too.
    *Numerics-changing*: sums of a matmul may go in another order than the library's, divisions and roots of updates are within a unit
    in the last place, and functions are those of CUDA. All else has the operations of the group, in its order.
  }];
  let dependentDialects = ["::hydra::plan::PlanDialect"];
  let statistics = [Statistic<"fused", "fused", "matmuls whose sums are used where they are made">];
}

def FuseRotations : Pass<"hydra-fuse-rotations", "::mlir::ModuleOp"> {
  let summary = "gradients of queries and keys are rotated where they are stored";
  let description = [{
    For GPUs with matmuls of warpgroups (`wgmma`). Rotations of queries and keys (RoPE) end in a launch behind attention's backward
    pass that reads their gradients and writes them rotated. Where a launch does nothing else, and nothing else reads these gradients, the
    kernels that sum them rotate them in registers, and store them where the launch would have written them. Each layer has a launch less, and
    gradients are not stored and read once more: of CS336 small, 4 × 1024 in bf16, 0.3 GiB of 14.5 and, by prediction, 76 us of 7.66 ms.

    Asks the backend of the module's target (dialects/plan/KernelExpansion.h), whose kernels they are. It takes rotations of pairs side by
    side or half a head apart, by positions in the row, in periods of it, or given; of gradients of queries and keys side by side in one
    launch, in a launch each, or of one of both. Heads have up to 128 numbers, and rows begin at multiples of 16 bytes where they are written.
    Marks attention's step, with the launches right behind it, and hydra-expand-kernels writes the kernels. cuDNN does not rotate, so
    `hydra-run --tune --allow-nondeterministic` does not try its backward pass in their place.
    *Exact*: gradients are rounded first, and angles, sines, products and roundings are those of the launch.
  }];
  let dependentDialects = ["::hydra::plan::PlanDialect"];
  let statistics = [Statistic<"fused", "fused", "launches that kernels of attention took in">];
}

def ExpandKernels : Pass<"hydra-expand-kernels", "::mlir::ModuleOp"> {
  let summary = "steps become launches of kernels that the target's backend has for them";
  let description = [{
    Asks the backend of the module's target (dialects/plan/KernelExpansion.h) to replace calls by launches
    of its own kernels, with the working memory that these need, and fused loops by one launch each. Switches
    over a number of rows become the steps that they have for all rows, where all of these can read the number by
    themselves: a kernel that is `counted`, a matmul that ends behind the last row. Only the source of kernels is
    written here, no machine code. Before batching, streams and memory, so that they see every launch and every byte. A backend whose library has all calls replaces none. *Exact.*
  }];
  let dependentDialects = ["::hydra::plan::PlanDialect"];
}

def FuseLoops : Pass<"hydra-fuse-loops", "::mlir::ModuleOp"> {
  let summary = "a loop whose slices never meet becomes one kernel";
  let description = [{
    For GPUs: where every step of a loop works on each sequence, head or row alone, one block can run
    all iterations of its slice: a launch for the loop instead of one for every step of every
    iteration, and what lives within an iteration, or is carried to the next, stays in shared memory.
    Where all steps work number by number (linear recurrences, running sums) a slice is a number and has a
    thread, which keeps it in registers and waits for no other (compiler/codegen/cuda/LaneKernels.h).
    Marks loops of small steps for which that is expected to be faster; the code is made from their
    steps (compiler/codegen/cuda/LoopKernels.h). TTT's scan of 2048 tokens in 24 layers has 80,000
    launches less. *Numerics-changing*: matmuls sum in another order than the library's.
  }];
  let statistics = [Statistic<"fused", "fused", "loops that become kernels">];
}

def OffloadMoments : Pass<"hydra-offload-moments", "::mlir::ModuleOp"> {
  let summary = "moments of optimizers live in the host's memory, and visit the device when they are updated";
  let description = [{
    What variables of role `moment` keep becomes buffers of the segment `host`. The steps of a program that
    work on the same moments are a visit: a transfer brings them into a slot of transient memory, the steps
    work there, and another takes back what they wrote. Slots take turns, so that one visit is under way while
    the moments of the next two arrive; as a rule there are three, each as large as its largest visit. Moments
    below `least` bytes stay, and so do those that are touched inside of loops or switches. What a moment is,
    its role says, whatever the optimizer is called. Copies into moments, which stand where a program ends,
    move up to what makes the values: a visit is no longer than its update.

    CS336 2.7B in bf16 keeps 25 GiB of 51 in the host's memory and moves 27 GB each way in a step, 0.5 s at
    55 GB/s. *Exact.*
  }];
  let options = [Option<"least", "least", "int64_t", "16384", "bytes from which on moments leave the device">];
  let statistics = [Statistic<"offloaded", "offloaded", "buffers that moved to the host">,
                    Statistic<"transfers", "transfers", "transfers of all programs">];
}

def BatchLaunches : Pass<"hydra-batch-launches", "::mlir::ModuleOp"> {
  let summary = "launches of one kernel that do not need each other become one";
  let description = [{
    For GPUs: a launch joins an earlier one of the same kernel (the same group over the same layouts)
    when nothing between the two stands in an order with it, both belong to one stream
    (hydra-assign-streams) and it brings no large buffer to life
    earlier. The instances share a launch; each has its own arguments. The updates of all parameters
    of one shape, and the squares for the norm by which gradients are clipped, are what it is for:
    a small model with a clip has 330 launches less. *Exact.*
  }];
  let statistics = [Statistic<"batched", "batched", "launches that others took in">];
}

def OverlapCollectives : Pass<"hydra-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "what ranks gather is gathered before it is needed";
  let description = [{
    For GPUs. Exchanges run beside what computes, one after the other, in the order of the program. There a
    gather of parameters stands right before its first reader, behind the exchange of the gradients that the
    layer before has just made: nothing computes while it runs. Others stand long before theirs, and hold
    memory until then. A gather moves to where, as the target's rates predict it, it ends as its reader begins,
    in time that other exchanges leave, even if all take a fifth longer than predicted: earlier, or later.
    None goes before one that is needed earlier and could begin by then: where the links cannot keep up, they
    go in the order of their readers. One that only the next step reads stays where it is.
    What waits for its reader has at most the bytes of `ahead` of the largest
    gathers. Gathers of which each takes what the one before brings (`hydra-split-gathers`) move together. CS336 xl with
    parameters shared out between two H200: 77 to 65 ms. *Exact.*
  }];
  let options = [Option<"ahead", "ahead", "uint64_t", "2", "largest gathers whose bytes may wait for their readers">];
  let statistics = [Statistic<"moved", "moved", "gathers that stand before another step">];
}

def FillIdle : Pass<"hydra-fill-idle", "::mlir::ModuleOp"> {
  let summary = "steps that can wait stand where something leaves multiprocessors idle";
  let description = [{
    For GPUs. A loop that is one kernel has a block for each slice (`hydra-fuse-loops`): with 16 heads it
    leaves most multiprocessors of a large GPU idle for as long as it runs. Steps before it that neither it nor what
    stands between waits for move to stand in front of it, where `hydra-assign-streams` lets them run beside
    it: gradients of parameters, their updates, and what is read behind the loop only. The nearest move
    first, as much as the idle time holds by the target's rates, and none over another such loop: what they
    read is alive until then. A program without such loops stays as it is. *Exact.*
  }];
  let statistics = [Statistic<"moved", "moved", "steps that stand later">];
}

def AssignStreams : Pass<"hydra-assign-streams", "::mlir::ModuleOp"> {
  let summary = "updates, casts of parameters and exchanges run beside the main stream";
  let description = [{
    For GPUs: updates, which are what writes nothing but parameters, their moments and rounded copies, and
    the steps whose results only updates read (gradients of parameters), go to a second stream. So do those
    that lead to updates by such steps alone (a gradient by way of what a parameter stands for: powers,
    tables, norms), from the end of the program back, as long as the main stream has as much to do behind
    them as the second one: at last all of a backward pass leads to updates. Steps that are made of
    parameters alone, in one step (casts) or several, go to a third; what ranks exchange to a fourth, in one order on all of them;
    transfers from the host's memory to a fifth, and back there to a sixth: each direction has its own engine.
    What is computed from exchanged bytes and variables alone goes to the second stream too, where the main
    stream has other work to do before it reads the results (sums of gradients, whose norm is taken at the
    end): else it would wait for the links. An exchange waits until what came before the last one was read
    there, so that bytes of two are alive. What stands in front of a loop that leaves multiprocessors idle,
    and need not come before it, begins with it on the second stream. Events order blocks that touch the same bytes. No stream is ahead
    of another by much more than the time of 96 average steps, as the target's rates predict it (0.2 ms of
    TTT bytes on an H200, 4 ms of CS336 xl), so that buffers still are reused. What does not fill the
    machine then runs beside something else: the small kernels of small batches, and the ends of large
    matmuls. Gradients and casts live a little longer. *Exact.*
  }];
  let options = [Option<"multiprocessors", "multiprocessors", "int64_t", "0",
                        "how many the library should expect for gradients on the second stream; 0: all">];
  let statistics = [Statistic<"moved", "moved", "blocks that left the main stream">];
}

def PlanMemory : Pass<"hydra-plan-memory", "::mlir::ModuleOp"> {
  let summary = "offsets of all buffers in the segments of the arena";
  let description = [{
    Two transient buffers may share bytes when streams and events order all uses of one before all
    uses of the other. Several placement heuristics run (by size, by length of life, by both, in program
    order), up to 4000 shuffled orders where they leave a gap, and the smallest peak is kept. Reports the
    peak and the largest sum of live bytes: the difference is fragmentation. *Exact.*
  }];
  let options = [Option<"reuse", "reuse", "bool", "true",
                        "let buffers share bytes; without, each has its own">];
}

#endif // HYDRA_PASSES_TD
