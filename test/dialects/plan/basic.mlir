// RUN: hydra-opt %s | hydra-opt | FileCheck %s

// Every operation of the dialect survives print and parse: a program with a loop inside a switch
// inside a loop, two streams and an event.
// CHECK-LABEL: plan.module @all
plan.module @all {
  // CHECK: plan.buffer persistent param : memref<16xf32>
  %w = plan.buffer persistent param : memref<16xf32>
  // CHECK: plan.variable parameter "w" = %{{.*}} init <normal(2.000000e-02)> group "default" : memref<16xf32>
  plan.variable parameter "w" = %w init <normal(2.0e-2)> group "default" : memref<16xf32>
  %lr = plan.buffer persistent other : memref<f32>
  // CHECK: plan.scalar "lr" = %{{.*}} constant 1.000000e-03 : memref<f32>
  plan.scalar "lr" = %lr constant 1.0e-3 : memref<f32>
  %rank = plan.buffer persistent other : memref<i32>
  // CHECK: plan.mesh_axis "data" 2 rank %{{.*}} : memref<i32>
  plan.mesh_axis "data" 2 rank %rank : memref<i32>
  // CHECK: plan.mesh_axis "model" 3
  plan.mesh_axis "model" 3
  %unit = plan.buffer persistent param : memref<2x1024xf32>
  // CHECK: plan.variable parameter "wq" = %{{.*}} member <[32, 64] at 0 over "data"> init <zeros> : memref<2x1024xf32>
  plan.variable parameter "wq" = %unit member <[32, 64] at 0 over "data"> init <zeros> : memref<2x1024xf32>
  // CHECK: plan.variable moment "wq.m" = %{{.*}} member <[32, 64] at 2048 over "data"> init <zeros> of "wq" : memref<2x1024xf32>
  plan.variable moment "wq.m" = %unit member <[32, 64] at 2048 over "data"> init <zeros> of "wq" : memref<2x1024xf32>
  %whole = plan.buffer persistent param : memref<1x1024xf32>
  // CHECK: plan.variable parameter "scale" = %{{.*}} member <[] at 7> init <ones> : memref<1x1024xf32>
  plan.variable parameter "scale" = %whole member <[] at 7> init <ones> : memref<1x1024xf32>
  // CHECK: %[[HOST:.*]] = plan.buffer host opt_state : memref<4x16xf32>
  %moment = plan.buffer host opt_state : memref<4x16xf32>
  // CHECK: plan.kernel @add rows 4 grain 1 [memref<16xf32>, memref<16xf32>]
  plan.kernel @add rows 4 grain 1 [memref<16xf32>, memref<16xf32>] {
  }
  // CHECK: plan.kernel @counted rows 4 grain 1 counted 2 [memref<16xf32>, memref<i32>]
  plan.kernel @counted rows 4 grain 1 counted 2 [memref<16xf32>, memref<i32>] {
  }
  // CHECK: plan.program @train streams 2
  plan.program @train streams 2 {
    %x = plan.buffer transient act.norm : memref<4x16xf32>
    %which = plan.buffer transient other : memref<i32>
    %v = plan.buffer transient grad : memref<8x16xf32>
    %bias = plan.buffer transient other : memref<8xf32>
    %v8 = plan.buffer transient other : memref<8x16xi8>
    %x5 = plan.buffer transient other : memref<4x16xf8E5M2>
    %w4 = plan.buffer transient other : memref<8x16xf8E4M3FN>
    %y = plan.buffer transient act.ffn : memref<4x8xf32>
    %z = plan.buffer transient act.ffn : memref<4x8xf32>
    %q = plan.buffer transient act.attn : memref<1x4x2x2xf32>
    %o = plan.buffer transient act.attn_out : memref<1x4x2x2xf32>
    %lse = plan.buffer transient act.attn_out : memref<1x2x4xf32>
    %dq = plan.buffer transient grad : memref<1x4x2x2xf32>
    %dk = plan.buffer transient grad : memref<1x4x2x2xf32>
    %dv = plan.buffer transient grad : memref<1x4x2x2xf32>
    %ids = plan.buffer transient other : memref<4xi32>
    %place = plan.buffer transient other : memref<4xi32>
    %mask = plan.buffer transient other : memref<4xi1>
    // CHECK: plan.input "x" = %{{.*}} values 0 : memref<4x16xf32>
    plan.input "x" = %x values 0 : memref<4x16xf32>
    // CHECK: plan.view %{{.*}} plus 0 : memref<4x16xf32> to memref<16xf32>
    %row = plan.view %x plus 0 : memref<4x16xf32> to memref<16xf32>
    // CHECK: plan.loop 4(%{{.*}} by 64 : memref<16xf32>) {
    plan.loop 4 (%row by 64 : memref<16xf32>) {
      // CHECK: plan.switch %{{.*}} : memref<i32> {
      plan.switch %which : memref<i32> {
        // CHECK: plan.launch @add(read %{{.*}} : memref<16xf32>, update %{{.*}} : memref<16xf32>)
        plan.launch @add(read %w : memref<16xf32>, update %row : memref<16xf32>) {label = "add"}
      }, {
        %t = plan.buffer transient workspace : memref<16xf32>
        // CHECK: plan.copy(%{{.*}} : memref<16xf32>) -> (%{{.*}} : memref<16xf32>) {label = "copy"}
        plan.copy(%row : memref<16xf32>) -> (%t : memref<16xf32>) {label = "copy"}
        plan.copy(%t : memref<16xf32>) -> (%row : memref<16xf32>) {label = "copy"}
      } 
    } {signals = 0 : i64}
    // CHECK: plan.fill 1.000000e+00 -> (%{{.*}} : memref<4x16xf32>) {label = "fill", stream = 1 : i64, waits = array<i64: 0>}
    plan.fill 1.0 -> (%x : memref<4x16xf32>) {label = "fill", stream = 1 : i64, waits = array<i64: 0>}
    // CHECK: plan.transfer(%{{.*}} : memref<4x16xf32>) -> (%[[HOST]] : memref<4x16xf32>) {label = "transfer", stream = 1 : i64}
    plan.transfer(%x : memref<4x16xf32>) -> (%moment : memref<4x16xf32>) {label = "transfer", stream = 1 : i64}
    // CHECK: plan.matmul(%{{.*}} : memref<4x16xf32>, %{{.*}} : memref<8x16xf32>, bias %{{.*}} : memref<8xf32>) -> (%[[Y:.*]] : memref<4x8xf32>, sums %{{.*}} : memref<4x8xf32>) {gelu, stream = 1 : i64, transpose_b}
    plan.matmul(%x : memref<4x16xf32>, %v : memref<8x16xf32>, bias %bias : memref<8xf32>) -> (%y : memref<4x8xf32>, sums %z : memref<4x8xf32>) {transpose_b, gelu, stream = 1 : i64}
    // CHECK: plan.matmul(%{{.*}} : memref<4x16xf32>, %{{.*}} : memref<8x16xi8>, bias %{{.*}} : memref<8xf32> weight_scale %{{.*}} : memref<8xf32>) -> (%{{.*}} : memref<4x8xf32>) {stream = 1 : i64, transpose_b}
    plan.matmul(%x : memref<4x16xf32>, %v8 : memref<8x16xi8>, bias %bias : memref<8xf32> weight_scale %bias : memref<8xf32>) -> (%y : memref<4x8xf32>) {transpose_b, stream = 1 : i64}
    // CHECK: plan.matmul(%{{.*}} : memref<4x16xf32>, %{{.*}} : memref<8x16xi8> weight_scale %{{.*}} : memref<8xf32>) -> (%{{.*}} : memref<4x8xf32>) {stream = 1 : i64, transpose_b}
    plan.matmul(%x : memref<4x16xf32>, %v8 : memref<8x16xi8> weight_scale %bias : memref<8xf32>) -> (%y : memref<4x8xf32>) {transpose_b, stream = 1 : i64}
    // CHECK: plan.matmul(%{{.*}} : memref<4x16xf8E5M2>, %{{.*}} : memref<8x16xf8E4M3FN>, scales %{{.*}} : memref<f32>, %{{.*}} : memref<f32>) -> (%{{.*}} : memref<4x8xf32>) {stream = 1 : i64, transpose_b}
    plan.matmul(%x5 : memref<4x16xf8E5M2>, %w4 : memref<8x16xf8E4M3FN>, scales %lr : memref<f32>, %lr : memref<f32>) -> (%y : memref<4x8xf32>) {transpose_b, stream = 1 : i64}
    // CHECK: plan.matmul(%{{.*}} : memref<4x8xf32>, %{{.*}} : memref<8x16xf32>) -> (%{{.*}} : memref<4x16xf32>) {accumulate, stream = 1 : i64}
    plan.matmul(%y : memref<4x8xf32>, %v : memref<8x16xf32>) -> (%x : memref<4x16xf32>) {accumulate, stream = 1 : i64}
    // CHECK: plan.attention(%[[Q:.*]] : memref<1x4x2x2xf32>, %[[Q]] : memref<1x4x2x2xf32>, %[[Q]] : memref<1x4x2x2xf32>) -> (%{{.*}} : memref<1x4x2x2xf32>, lse %{{.*}} : memref<1x2x4xf32>) {cap = 5.000000e+01 : f64, causal, scale = 5.000000e-01 : f64, stream = 1 : i64}
    plan.attention(%q : memref<1x4x2x2xf32>, %q : memref<1x4x2x2xf32>, %q : memref<1x4x2x2xf32>) -> (%o : memref<1x4x2x2xf32>, lse %lse : memref<1x2x4xf32>) {scale = 0.5 : f64, cap = 50.0 : f64, causal, stream = 1 : i64}
    // CHECK: plan.attention_grad({{.*}}) -> (%{{.*}} : memref<1x4x2x2xf32>, %{{.*}} : memref<1x4x2x2xf32>, %{{.*}} : memref<1x4x2x2xf32>) {scale = 5.000000e-01 : f64, stream = 1 : i64, window = 3 : i64}
    plan.attention_grad(%o : memref<1x4x2x2xf32>, %q : memref<1x4x2x2xf32>, %q : memref<1x4x2x2xf32>, %q : memref<1x4x2x2xf32>, %o : memref<1x4x2x2xf32>, %lse : memref<1x2x4xf32>) -> (%dq : memref<1x4x2x2xf32>, %dk : memref<1x4x2x2xf32>, %dv : memref<1x4x2x2xf32>) {scale = 0.5 : f64, window = 3 : i64, stream = 1 : i64}
    // CHECK: plan.cached_attention(%[[Q]] : memref<1x4x2x2xf32>, %{{.*}}, %{{.*}} : memref<1xf32>) -> (%{{.*}} : memref<1x4x2x2xf32>, %{{.*}} : memref<1x2x9x2xf32>, %{{.*}} : memref<1x2x9x2xf32>) {cap = 3.000000e+00 : f64, chunk = 4 : i64, scale = 5.000000e-01 : f64, stream = 1 : i64}
    %position = plan.buffer transient other : memref<1xf32>
    %slots = plan.buffer transient act.state : memref<1x2x9x2xf32>
    plan.cached_attention(%q : memref<1x4x2x2xf32>, %q : memref<1x4x2x2xf32>, %q : memref<1x4x2x2xf32>, %position : memref<1xf32>) -> (%o : memref<1x4x2x2xf32>, %slots : memref<1x2x9x2xf32>, %slots : memref<1x2x9x2xf32>) {scale = 0.5 : f64, cap = 3.0 : f64, chunk = 4 : i64, stream = 1 : i64}
    // CHECK: plan.sample(%{{.*}} : memref<1x40xf32>, %{{.*}} : memref<1x4xi32>, %{{.*}} : memref<1xf32>, %{{.*}} : memref<1x5xf32>, %{{.*}} : memref<1x4xi32>) -> (%{{.*}} : memref<1xi32>, %{{.*}} : memref<1x2xi32>) {stream = 1 : i64}
    %scores = plan.buffer transient logits : memref<1x40xf32>
    %some = plan.buffer transient other : memref<1x4xi32>
    %settings = plan.buffer transient other : memref<1x5xf32>
    %token = plan.buffer transient other : memref<1xi32>
    %seen = plan.buffer transient other : memref<1x2xi32>
    plan.sample(%scores : memref<1x40xf32>, %some : memref<1x4xi32>, %position : memref<1xf32>, %settings : memref<1x5xf32>, %some : memref<1x4xi32>) -> (%token : memref<1xi32>, %seen : memref<1x2xi32>) {stream = 1 : i64}
    // CHECK: plan.embedding_grad(%{{.*}} : memref<4xi32>, %{{.*}} : memref<4x16xf32>) -> (%{{.*}} : memref<8x16xf32>)
    plan.embedding_grad(%ids : memref<4xi32>, %x : memref<4x16xf32>) -> (%v : memref<8x16xf32>) {stream = 1 : i64}
    // CHECK: plan.compact(%{{.*}} : memref<4xi1>) -> (%{{.*}} : memref<4xi32>, %{{.*}} : memref<4xi32>, %{{.*}} : memref<i32>)
    plan.compact(%mask : memref<4xi1>) -> (%ids : memref<4xi32>, %place : memref<4xi32>, %which : memref<i32>) {stream = 1 : i64}
    %pairs = plan.buffer transient other : memref<4x3xi1>
    %sorted = plan.buffer transient other : memref<8xi32>
    %groups = plan.buffer transient other : memref<8xi32>
    %places = plan.buffer transient other : memref<4x2xi32>
    %offsets = plan.buffer transient other : memref<4xi32>
    %experts = plan.buffer transient other : memref<3x8x16xf32>
    // CHECK: plan.route(%{{.*}} : memref<4x3xi1>) -> (%{{.*}} : memref<8xi32>, %{{.*}} : memref<8xi32>, %{{.*}} : memref<4x2xi32>, %{{.*}} : memref<4xi32>) {stream = 1 : i64}
    plan.route(%pairs : memref<4x3xi1>) -> (%sorted : memref<8xi32>, %groups : memref<8xi32>, %places : memref<4x2xi32>, %offsets : memref<4xi32>) {stream = 1 : i64}
    %counts = plan.buffer transient other : memref<8xi32>
    // CHECK: plan.count_exponents(%{{.*}}, %{{.*}} : memref<4x16xf32>, memref<4x8xf32>) -> (%{{.*}} : memref<8xi32>) {first = -4 : i64, stream = 1 : i64}
    plan.count_exponents(%x, %y : memref<4x16xf32>, memref<4x8xf32>) -> (%counts : memref<8xi32>) {first = -4 : i64, stream = 1 : i64}
    // CHECK: plan.grouped_linear(%{{.*}} : memref<4x16xf32>, %{{.*}} : memref<3x8x16xf32>, %{{.*}} : memref<4xi32>) -> (%{{.*}} : memref<4x8xf32>) {compute = tf32, stream = 1 : i64, transposed}
    plan.grouped_linear(%x : memref<4x16xf32>, %experts : memref<3x8x16xf32>, %offsets : memref<4xi32>) -> (%y : memref<4x8xf32>) {transposed, compute = tf32, stream = 1 : i64}
    // CHECK: plan.grouped_outer(%{{.*}} : memref<4x8xf32>, %{{.*}} : memref<4x16xf32>, %{{.*}} : memref<4xi32>) -> (%{{.*}} : memref<3x8x16xf32>) {stream = 1 : i64}
    plan.grouped_outer(%y : memref<4x8xf32>, %x : memref<4x16xf32>, %offsets : memref<4xi32>) -> (%experts : memref<3x8x16xf32>) {stream = 1 : i64}
    %series = plan.buffer transient other : memref<4x6xf32>
    %spectra = plan.buffer transient other : memref<4x4x2xf32>
    // CHECK: plan.fft(%{{.*}} : memref<4x6xf32>) -> (%{{.*}} : memref<4x4x2xf32>) {stream = 1 : i64}
    plan.fft(%series : memref<4x6xf32>) -> (%spectra : memref<4x4x2xf32>) {stream = 1 : i64}
    // CHECK: plan.fft(%{{.*}} : memref<4x4x2xf32>) -> (%{{.*}} : memref<4x6xf32>) {inverse, stream = 1 : i64}
    plan.fft(%spectra : memref<4x4x2xf32>) -> (%series : memref<4x6xf32>) {inverse, stream = 1 : i64}
    // CHECK: plan.linear_recurrence(%{{.*}}, %{{.*}} : memref<4x6xf32>, memref<4x4x2xf32>) -> (%{{.*}} : memref<4x6xf32>) {backward, stream = 1 : i64}
    plan.linear_recurrence(%series, %spectra : memref<4x6xf32>, memref<4x4x2xf32>) -> (%series : memref<4x6xf32>) {backward, stream = 1 : i64}
    %all = plan.buffer transient comm : memref<12x16xf32>
    // CHECK: plan.all_gather(%{{.*}} : memref<4x16xf32>) -> (%{{.*}} : memref<12x16xf32>) along 1 {stream = 1 : i64}
    plan.all_gather(%x : memref<4x16xf32>) -> (%all : memref<12x16xf32>) along 1 {stream = 1 : i64}
    // CHECK: plan.all_to_all(%{{.*}} : memref<8x16xf32>) -> (%{{.*}} : memref<8x16xf32>) along 0 {stream = 1 : i64}
    %pieces = plan.buffer transient comm : memref<8x16xf32>
    plan.all_to_all(%v : memref<8x16xf32>) -> (%pieces : memref<8x16xf32>) along 0 {stream = 1 : i64}
    // CHECK: plan.input "rows" = %{{.*}} values 0 batch 0 : memref<4x16xf32>
    %rows = plan.buffer transient act.norm : memref<4x16xf32>
    plan.input "rows" = %rows values 0 batch 0 : memref<4x16xf32>
    // CHECK: plan.output "y" = %{{.*}} batch 1 : memref<4x16xf32>
    plan.output "y" = %rows batch 1 : memref<4x16xf32>
    // CHECK: plan.output "x" = %{{.*}} : memref<4x16xf32>
    plan.output "x" = %x : memref<4x16xf32>
  }
}
