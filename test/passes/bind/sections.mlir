// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --hydra-unroll-layers --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// Sections compute nothing and are gone; only locations know of them. A path goes through elements of stacks, sections
// and definitions to the parameter that an operation reads.
// CHECK-NOT: hydra.section
// CHECK-LABEL: hydra.entry @y
// CHECK-NOT: hydra.section
// LOC-DAG: #hydra.scope<"layers.0.attn.q", forward, act.ffn>
// LOC-DAG: #hydra.scope<"layers.1.mlp.up", forward, act.ffn>
// What reads no parameter is at its section alone, behind the last section too.
// LOC-DAG: #hydra.scope<"layers.1.mlp", forward, act.ffn>
// What a definition computes is at its name.
// LOC-DAG: #hydra.scope<"layers.0.mlp.halved", forward, act.ffn>
// LOC-DAG: #hydra.scope<"ahead.table", forward, act.embed>
// Parameters are where they are read.
// LOC-DAG: #hydra.scope<"layers.0.attn.q", forward, param>
// Losses, and what is computed from them, are of the loss.
// LOC-DAG: #hydra.scope<"judged", loss, logits>
// What a loss is of, and norms.
// LOC-DAG: #hydra.scope<"ahead.table", forward, logits>
// LOC-DAG: #hydra.scope<"layers.0.attn.norm", forward, act.norm>
hydra.model @m version 1 {
  hydra.param @table [8, 4] init = normal(0.02)
  hydra.stack @layers[2] {
    hydra.param @norm [4]    init = ones
    hydra.param @q    [4, 4] init = normal(0.02)
    hydra.param @up   [4, 4] init = normal(0.02)
  }
  hydra.def @halved(%x) = %x * 0.5
  hydra.entry @y(%tokens: [2, 3] i32, %labels: [2, 3] i32) {
    hydra.section @ahead
    %start = hydra.let embedding(%tokens, @table)
    %end = hydra.for @layers carry(%x = %start) {
      hydra.section @attn
      %n = hydra.let linear(rms_norm(%x, @norm, eps = 1.0e-5), @q)
      hydra.section @mlp
      %u = hydra.let linear(%n, @up)
      %h = hydra.let @halved(silu(%u)) + %x
      hydra.yield %h
    }
    %scores = hydra.let linear(%end, @table)
    hydra.section @judged
    %ce = hydra.let cross_entropy(%scores, %labels)
    %loss = hydra.let %ce * 2
    hydra.return loss = %loss
  }
}
