// The words of plans. runtime/plan/plan.fbs has the same lists.
#ifndef HYDRA_PLAN_ENUMS_TD
#define HYDRA_PLAN_ENUMS_TD

include "mlir/IR/EnumAttr.td"

class Plan_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::hydra::plan";
}

class Plan_Words<string name, string summary, list<string> words>
    : Plan_Enum<name, summary, !foreach(i, !range(words), I32EnumAttrCase<words[i], i>)>;

def Plan_Segment : Plan_Words<"Segment", "part of the arena", ["persistent", "transient"]>;

/// `act_norm` is written `act.norm`.
def Plan_Category : Plan_Enum<"Category", "what bytes are for, in memory reports", [
  I32EnumAttrCase<"param", 0>, I32EnumAttrCase<"grad", 1>, I32EnumAttrCase<"opt_state", 2>,
  I32EnumAttrCase<"act_embed", 3, "act.embed">, I32EnumAttrCase<"act_norm", 4, "act.norm">,
  I32EnumAttrCase<"act_attn", 5, "act.attn">, I32EnumAttrCase<"act_attn_out", 6, "act.attn_out">,
  I32EnumAttrCase<"act_softmax", 7, "act.softmax">, I32EnumAttrCase<"act_ffn", 8, "act.ffn">,
  I32EnumAttrCase<"act_state", 9, "act.state">, I32EnumAttrCase<"logits", 10>,
  I32EnumAttrCase<"workspace", 11>, I32EnumAttrCase<"comm", 12>, I32EnumAttrCase<"other", 13>]>;

/// What can stand in for a launch of a backend's own kernel.
def Plan_LibraryFunction : Plan_Words<"LibraryFunction", "function of a library",
                                 ["nothing", "attention", "attention_grad"]>;

#endif // HYDRA_PLAN_ENUMS_TD
