// The words of reports and of the cost model. runtime/plan/plan.fbs has the same lists.
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
     "scan", "optimizer", "loss", "other"]>;

def Hydra_Phase : Hydra_Enum<"Phase", "part of a training step",
    ["forward", "loss", "backward", "optimizer"]>;

#endif // HYDRA_ENUMS_TD
