// Logs have what an entry returns beside its loss, but for rows of sequences that ranks share out: a plan that only runs forward has those, whole.
// RUN: rm -rf %t && mkdir -p %t && cd %t
// RUN: hydrac %s --preset=tiny --batch=4 --seq=8 -o one.fb && hydrac %s --preset=tiny --batch=4 --seq=8 --mesh=data:2 -o two.fb
// RUN: hydra-run one.fb --seed 3 --steps 1 --log one.jsonl
// RUN: hydra-run two.fb --ranks=2 --seed 3 --steps 1 --log two.jsonl
// RUN: FileCheck %s --check-prefix=ONE < one.jsonl
// ONE: "outputs":{"lengths":{{\[\[[-0-9.]+\],\[[-0-9.]+\],\[[-0-9.]+\],\[[-0-9.]+\]\]}},"all":{{[-0-9.]+}}}
// RUN: FileCheck %s --check-prefix=TWO < two.jsonl
// TWO: "outputs":{"all":{{[-0-9.]+}}}
// RUN: hydrac %s --preset=tiny --batch=4 --seq=8 --mode=forward --mesh=data:2 -o forward.fb
// RUN: hydra-run forward.fb --ranks=2 --seed 3 | FileCheck %s --check-prefix=WHOLE
// WHOLE: lengths [4, 1]
hydra.model @told version 1 {
  hydra.symbols dims(D = 2, V = 256)
  hydra.preset @tiny {D = 2}
  hydra.group @default sgd(momentum = 0.0, wd = 0.0)
  hydra.param @tok_emb [V, D] init = normal(0.02)
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @tok_emb)
    %loss = hydra.let linear_cross_entropy(%x, @tok_emb, %labels)
    %lengths = hydra.let reshape(sum(%x * %x, axes = [1, 2]), [B, 1])
    %all = hydra.let mean(%lengths, axes = [0, 1])
    hydra.return loss = %loss, lengths = %lengths, all = %all
  }
}
