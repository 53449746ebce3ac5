// What ranks have in parts is given whole, printed whole and written whole.
// RUN: rm -rf %t && mkdir -p %t && cd %t
// RUN: hydrac %s --mode=forward --batch=4 -o one.fb
// RUN: hydrac %s --mode=forward --batch=4 --mesh=data:2 -o two.fb
// RUN: hydrac %s --mode=forward --batch=4 --mesh=a:2,b:2 -o four.fb
// RUN: hydra-run one.fb --seed 3 --outputs one.safetensors | sed 1,/^$/d > one.txt
// RUN: hydra-run two.fb --ranks=2 --seed 3 --outputs two.safetensors | sed 1,/^$/d > two.txt
// RUN: hydra-run four.fb --ranks=4 --seed 3 --outputs four.safetensors | sed 1,/^$/d > four.txt
// RUN: FileCheck %s < one.txt
// CHECK: scores [4, 5]
// RUN: cmp one.txt two.txt
// RUN: cmp one.txt four.txt
// RUN: compare-tensors two.safetensors one.safetensors 1e-6
// RUN: compare-tensors four.safetensors one.safetensors 1e-6
hydra.model @rows version 1 {
  hydra.param @w [5, 7] init = normal(0.5)
  hydra.entry @loss(%x: [B, 7] f32, %y: [3, B, 5] f32) dims(B) {
    %w = hydra.use @w
    %scores = hydra.linear %x, %w
    %sums = hydra.add %scores, %y
    %squares = hydra.mul %scores, %scores
    %mean = hydra.mean %squares axes = [0, 1]
    hydra.return scores = %scores, sums = %sums, mean = %mean
  }
}
