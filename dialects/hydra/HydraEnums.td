// The words of reports and of the cost model, and the roles of programs and variables, of which runtime/plan/plan.fbs has the
// same lists. The kinds of symbols, the predicates of comparisons, the settings of presets.
#ifndef HYDRA_ENUMS_TD
#define HYDRA_ENUMS_TD

include "mlir/IR/EnumAttr.td"

class Hydra_Enum<string name, string summary, list<string> words>
    : I32EnumAttr<name, summary,
                  !foreach(i, !range(words), I32EnumAttrCase<words[i], i>)> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::hydra";
}

def Hydra_OpClass : Hydra_Enum<"OpClass", "kind of work",
    ["gemm", "attention", "softmax", "norm", "elementwise", "copy_cast", "reduce", "gather_scatter",
     "scan", "fft", "optimizer", "loss", "collective", "transfer", "other"]>;

def Hydra_Phase : Hydra_Enum<"Phase", "part of a training step",
    ["forward", "loss", "backward", "clip", "optimizer"]>;

/// `act_norm` is written `act.norm`.
def Hydra_Category : I32EnumAttr<"Category", "what bytes are for, in memory reports", [
    I32EnumAttrCase<"param", 0>, I32EnumAttrCase<"grad", 1>, // of parameters
    I32EnumAttrCase<"opt_state", 2>, I32EnumAttrCase<"act_embed", 3, "act.embed">,
    I32EnumAttrCase<"act_norm", 4, "act.norm">,
    I32EnumAttrCase<"act_attn", 5, "act.attn">,               // what attention reads
    I32EnumAttrCase<"act_attn_scores", 6, "act.attn_scores">, // until they are weights
    I32EnumAttrCase<"act_attn_out", 7, "act.attn_out">,
    I32EnumAttrCase<"act_softmax", 8, "act.softmax">, I32EnumAttrCase<"act_ffn", 9, "act.ffn">,
    I32EnumAttrCase<"act_state", 10, "act.state">,            // what goes from chunk to chunk or step to step
    I32EnumAttrCase<"act_ckpt", 11, "act.ckpt">,              // from which values are computed again
    I32EnumAttrCase<"act_grad", 12, "act.grad">,              // gradients of activations
    I32EnumAttrCase<"logits", 13>, I32EnumAttrCase<"workspace", 14>, I32EnumAttrCase<"comm", 15>,
    I32EnumAttrCase<"other", 16>]> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::hydra";
}

def Hydra_InitKind : Hydra_Enum<"InitKind", "way in which variables start",
    ["zeros", "ones", "constant", "normal", "trunc_normal", "uniform", "shuffle"]>;

/// What a parameter or state is for; plan files have the same list.
def Hydra_VariableRole : I32EnumAttr<"VariableRole", "role of a variable", [
    I32EnumAttrCase<"parameter", 0>,
    I32EnumAttrCase<"state", 1>,         // of the model
    I32EnumAttrCase<"moment", 2>,        // kept by the optimizer for the parameter that owns it
    I32EnumAttrCase<"gradient", 3>,      // the sum of its owner's gradients over micro-batches
    I32EnumAttrCase<"copy", 4>,          // starts as its owner, follows it, and is in no checkpoint
    I32EnumAttrCase<"update_count", 5>,  // the number of the next update, from 1
    I32EnumAttrCase<"step_sum", 6>,      // summed over the micro-batches of a step, then cleared
    I32EnumAttrCase<"loss_scaling", 7>,  // what the loss is multiplied by, and since how many updates
    I32EnumAttrCase<"cache", 8>,         // what programs that read on keep of earlier tokens; in no checkpoint
    I32EnumAttrCase<"average", 9>,       // of the values that updates gave to the parameter that owns it
    I32EnumAttrCase<"gradient_part", 10>,  // as gradient, of one rank's rows: a part of the sum over ranks
    I32EnumAttrCase<"amax_history", 11>,   // largest magnitudes of 8-bit operands in the last steps
    I32EnumAttrCase<"derived", 12>,        // what programs of stage `derive` make of others; in no checkpoint
    I32EnumAttrCase<"scale", 13>,          // what rows of its owner, a parameter of i8, are multiplied by
    I32EnumAttrCase<"rest", 14>]> {        // i16: what its owner, a parameter of bf16, leaves out of numbers of f32
  let cppNamespace = "::hydra";
}

/// What passes have made of a forward program.
def Hydra_ProgramStage : I32EnumAttr<"ProgramStage", "stage of a program", [
    I32EnumAttrCase<"grad", 0>,          // returns gradients, which nothing uses
    I32EnumAttrCase<"train", 1>,         // each of the others has the role of its name
    I32EnumAttrCase<"count", 2>, I32EnumAttrCase<"accumulate", 3>, I32EnumAttrCase<"apply", 4>,
    I32EnumAttrCase<"derive", 5>]> {
  let cppNamespace = "::hydra";
}

/// What a run uses a program for; plan files have the same list.
def Hydra_ProgramRole : I32EnumAttr<"ProgramRole", "role of a program", [
    I32EnumAttrCase<"custom", 0>,
    I32EnumAttrCase<"train", 1>,         // a whole step
    I32EnumAttrCase<"count", 2>,         // of a step over micro-batches: what losses divide by
    I32EnumAttrCase<"accumulate", 3>,    // each of its micro-batches
    I32EnumAttrCase<"apply", 4>,         // its update
    I32EnumAttrCase<"derive", 5>,        // makes derived variables of others that something else has written
    I32EnumAttrCase<"eval", 6>,
    I32EnumAttrCase<"generate", 7>,
    I32EnumAttrCase<"decode", 8>]> {     // reads the next tokens of sequences, of which it keeps what it needs
  let cppNamespace = "::hydra";
}

/// What a preset can say of training: each is the default of the flag of hydrac that is called so, with `-` for `_`.
def Hydra_PresetSetting : Hydra_Enum<"PresetSetting", "setting of a preset",
    ["batch", "seq", "accum", "clip", "lr", "min_lr", "schedule", "warmup", "stable", "schedule_steps"]>;

/// What a symbol of a model stands for.
def Hydra_SymbolKind : I32EnumAttr<"SymbolKind", "kind of a symbol", [
    I32EnumAttrCase<"dim", 0>, I32EnumAttrCase<"real", 1>, I32EnumAttrCase<"flag", 2>,
    I32EnumAttrCase<"choice", 3>]> {
  let cppNamespace = "::hydra";
}
def Hydra_SymbolKinds : TypedArrayAttrBase<Hydra_SymbolKind, "kinds of symbols">;

/// What `hydra.compare` asks of its operands.
def Hydra_Predicate : Hydra_Enum<"Predicate", "predicate of a comparison", ["eq", "ne", "lt", "le", "gt", "ge"]>;

/// How the learning rate goes, as flags and presets have it.
def Hydra_RateSchedule : Hydra_Enum<"RateSchedule", "schedule of the learning rate",
    ["constant", "linear", "cosine", "wsd"]>;

#endif // HYDRA_ENUMS_TD
