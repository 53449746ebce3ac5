// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --hydra-differentiate --hydra-optimizer=clip=true --hydra-chunk-linear-ce --hydra-lower-losses --mlir-print-debuginfo | FileCheck %s

// The loss behind a projection keeps its gradients at once. Logits are the forward pass's all the same, what their rows
// lose is the loss, and the gradients of head and hidden states are the backward pass's, before any other of its
// operations. The norm of all gradients, and what they are scaled by, is clipping.
// CHECK-LABEL: hydra.entry @loss
// CHECK: hydra.linear %{{.*}} loc(#[[HIDDEN:.*]])
// CHECK: hydra.linear {{.*}} dtype = f32 {{.*}} loc(#[[LOGITS:.*]])
// CHECK: hydra.log {{.*}} loc(#[[LOSS:.*]])
// CHECK: hydra.matmul {{.*}} loc(#[[ROWS:.*]])
// CHECK: hydra.matmul {{.*}} transpose_a {{.*}} loc(#[[HEAD:.*]])
// CHECK: hydra.matmul {{.*}} transpose_a {{.*}} loc(#[[WEIGHT:.*]])
// CHECK: hydra.sqrt {{.*}} loc(#[[NORM:.*]])
// CHECK: hydra.adamw {{.*}} loc(#[[UPDATE:.*]])
// CHECK-DAG: #[[HIDDEN]] = loc(fused<#hydra.scope<"trunk.w", forward, act.ffn>>
// CHECK-DAG: #[[LOGITS]] = loc(fused<#hydra.scope<"head", forward, logits by "hydra-chunk-linear-ce">>
// CHECK-DAG: #[[LOSS]] = loc(fused<#hydra.scope<"head", loss, logits by "hydra-chunk-linear-ce">>
// CHECK-DAG: #[[ROWS]] = loc(fused<#hydra.scope<"head", backward, act.grad by "hydra-chunk-linear-ce">>
// CHECK-DAG: #[[HEAD]] = loc(fused<#hydra.scope<"head", backward, grad by "hydra-chunk-linear-ce">>
// CHECK-DAG: #[[WEIGHT]] = loc(fused<#hydra.scope<"trunk.w", backward, grad by "hydra-differentiate">>
// CHECK-DAG: #[[NORM]] = loc(fused<#hydra.scope<"", clip, workspace by "hydra-lower-losses">>
// CHECK-DAG: #[[UPDATE]] = loc(fused<#hydra.scope<"trunk.w", optimizer, workspace by "hydra-optimizer">>
hydra.model @m version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @w    [4, 4] init = normal(0.02)
  hydra.param @head [8, 4] init = normal(0.02)
  hydra.def @trunk(%x) = linear(%x, @w)
  hydra.entry @loss(%x: [6, 4] f32, %labels: [6] i32) {
    %loss = hydra.let linear_cross_entropy(@trunk(%x), @head, %labels)
    hydra.return loss = %loss
  }
}
