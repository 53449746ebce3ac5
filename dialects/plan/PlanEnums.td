// The words of plans. runtime/plan/plan.fbs has the same lists, but for `ScalarSource`.
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

/// `host`: of the host's memory, which the device reads and writes by transfers alone.
def Plan_Segment : Plan_Words<"Segment", "part of a plan's memory", ["persistent", "transient", "host"]>;

def Plan_InputKind : Plan_Words<"InputKind", "what a program is given", ["tokens", "labels", "values"]>;

/// Of plan files' schedules those that say more than how a number goes over the steps, and `constant`.
def Plan_ScalarSource : Plan_Words<"ScalarSource", "what an executor writes into a scalar",
                                   ["constant", "step", "draw_low", "draw_high", "micro_batch"]>;

/// What can stand in for a launch of a backend's own kernel.
def Plan_LibraryFunction : Plan_Words<"LibraryFunction", "function of a library",
                                 ["nothing", "attention", "attention_grad"]>;

def Plan_Bound : Plan_Words<"Bound", "what most of a step's predicted time goes to",
                            ["launch", "compute", "memory", "exchange"]>;

#endif // HYDRA_PLAN_ENUMS_TD
