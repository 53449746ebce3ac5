// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --mlir-print-debuginfo | FileCheck %s

// Attention that is written out: a softmax of products of two computed values is of its scores, also through what scales
// them. The softmax is its weights, the values that attention reads are queries, keys and values, and the product of
// weights and values is its output. A router's softmax is of products with a parameter, which are no scores.
// CHECK: hydra.linear {{.*}} loc(#[[READ:.*]])
// CHECK: hydra.matmul {{.*}} loc(#[[PRODUCTS:.*]])
// CHECK: hydra.mul {{.*}} loc(#[[SCALED:.*]])
// CHECK: hydra.softmax {{.*}} loc(#[[WEIGHTS:.*]])
// CHECK: hydra.matmul {{.*}} loc(#[[OUT:.*]])
// CHECK: hydra.linear {{.*}} loc(#[[ROUTER:.*]])
// CHECK-DAG: #[[READ]] = loc(fused<#hydra.scope<"wq", forward, act.attn>>
// CHECK-DAG: #[[PRODUCTS]] = loc(fused<#hydra.scope<"", forward, act.attn_scores>>
// CHECK-DAG: #[[SCALED]] = loc(fused<#hydra.scope<"", forward, act.attn_scores>>
// CHECK-DAG: #[[WEIGHTS]] = loc(fused<#hydra.scope<"", forward, act.softmax>>
// CHECK-DAG: #[[OUT]] = loc(fused<#hydra.scope<"", forward, act.attn_out>>
// CHECK-DAG: #[[ROUTER]] = loc(fused<#hydra.scope<"r", forward, act.ffn>>
hydra.model @m version 1 {
  hydra.param @wq [4, 4] init = normal(0.02)
  hydra.param @r [4, 4] init = normal(0.02)
  hydra.entry @y(%x: [2, 3, 4] f32) {
    %q = hydra.let linear(%x, @wq)
    %weights = hydra.let softmax(matmul(%q, %q, transpose_b) * 0.5)
    %o = hydra.let matmul(%weights, %q)
    %routes = hydra.let softmax(linear(%o, @r))
    hydra.return y = %o, routes = %routes
  }
}
