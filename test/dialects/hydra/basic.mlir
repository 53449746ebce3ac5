// Every operation of the dialect once, as a person writes it: what is printed reads back the same, as
// a template, in generic form, and bound.
//
// RUN: hydra-opt %s -o %t.template
// RUN: FileCheck %s --input-file=%t.template
// RUN: hydra-opt %t.template | diff %t.template -
// RUN: hydra-opt %s --mlir-print-op-generic | hydra-opt | diff %t.template -
//
// RUN: hydra-opt %s --hydra-bind="preset=small batch=2 seq=8" -o %t.bound
// RUN: FileCheck %s --input-file=%t.bound --check-prefix=BOUND
// RUN: hydra-opt %t.bound | diff %t.bound -
// RUN: hydra-opt %t.bound --mlir-print-op-generic | hydra-opt | diff %t.bound -
// RUN: hydra-opt %t.template --hydra-bind="preset=small batch=2 seq=8" | diff %t.bound -
//
// RUN: hydra-opt %t.bound --hydra-unroll-layers -o %t.unrolled
// RUN: hydra-opt %t.unrolled | diff %t.unrolled -
// RUN: FileCheck %s --input-file=%t.unrolled --check-prefix=UNROLLED

// CHECK-LABEL: hydra.model @everything version 1 {
hydra.model @everything version 1 {
  // CHECK-NEXT: hydra.symbols dims(D, F = 12, H, L, V) reals(eps = 1.000000e-05, cut) flags(tied, wide = true) choices(mode = fast of (fast, slow), kind of (a, b))
  hydra.symbols dims(D, F = 12, H, L, V) reals(eps = 1.0e-5, cut) flags(tied, wide = true)
                choices(mode = fast of (fast, slow), kind of (a, b))
  // CHECK-NEXT: hydra.derive hd = D / H
  hydra.derive hd = D / H
  // CHECK-NEXT: hydra.preset @small {D = 8, H = 2, L = 3, V = 11, cut = 3.000000e+00, kind = b, tied = false}
  hydra.preset @small {D = 8, H = 2, L = 3, V = 11, cut = 3.0, tied = false, kind = b}
  // CHECK-NEXT: hydra.preset @"7B" {D = 4096, mode = slow} settings {accum = 4, lr = 3.000000e-04, schedule = wsd, warmup = 0}{{$}}
  hydra.preset @"7B" {D = 4096, mode = slow} settings {accum = 4, lr = 3.0e-4, warmup = 0, schedule = wsd}
  // CHECK-NEXT: hydra.group @default adamw(beta1 = 9.000000e-01, beta2 = 0.94999999999999996, eps = 1.000000e-08, wd = 1.000000e-01, lr_scale = 1.000000e+00)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  // CHECK-NEXT: hydra.group @slow adamw({{.*}}, lr_scale = eps)
  hydra.group @slow adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0, lr_scale = eps)

  // BOUND:      hydra.model @everything version 1 bound {preset = "small", symbols = {D = 8 : i64, F = 12 : i64, H = 2 : i64, L = 3 : i64, V = 11 : i64, cut = 3.000000e+00 : f64, eps = 1.000000e-05 : f64, hd = 4 : i64, kind = "b", mode = "fast", tied = false, wide = true}} {
  // BOUND-NEXT:   hydra.group @default

  // CHECK-NEXT: hydra.param @table [V, D] init = trunc_normal(1.000000e+00, cut) from "embed.weight"{{$}}
  // BOUND:      hydra.param @table [11, 8] init = trunc_normal(1.000000e+00, 3.000000e+00) from "embed.weight"{{$}}
  hydra.param @table [V, D] init = trunc_normal(1.0, cut) from "embed.weight"
  // CHECK-NEXT: hydra.param @half [D] bf16 init = uniform(1 / sqrt(D)) group = @slow when not tied
  // BOUND-NEXT: hydra.param @half [8] bf16 init = uniform(0.35355339059327373) group = @slow{{$}}
  hydra.param @half [D] bf16 init = uniform(1 / sqrt(D)) group = @slow when not tied
  // CHECK-NEXT: hydra.param @absent [D] init = ones when tied
  // BOUND-NOT:  @absent
  hydra.param @absent [D] init = ones when tied
  // CHECK-NEXT: hydra.state @steps [] i32 init = zeros
  // BOUND-NEXT: hydra.state @steps [] i32 init = zeros
  hydra.state @steps [] i32 init = zeros
  // CHECK-NEXT: hydra.stack @layers[L] {
  // BOUND-NEXT: hydra.stack @layers[3] {
  hydra.stack @layers[L] {
    // CHECK-NEXT: hydra.param @w [D, D] init = normal(2.000000e-02) from "h.{layer}.w.weight" transposed{{$}}
    // BOUND-NEXT: hydra.param @w [8, 8] init = normal(2.000000e-02) from "h.{layer}.w.weight" transposed{{$}}
    // UNROLLED: hydra.param @layers.2.w [8, 8] init = normal(2.000000e-02) from "h.2.w.weight" transposed in "layers.2"{{$}}
    hydra.param @w [D, D] init = normal(0.02) from "h.{layer}.w.weight" transposed
    // CHECK-NEXT: hydra.param @experts [3, D, D] init = ones from "h.{layer}.experts.{row}.w"{{$}}
    // BOUND-NEXT: hydra.param @experts [3, 8, 8] init = ones from "h.{layer}.experts.{row}.w"{{$}}
    // UNROLLED: hydra.param @layers.2.experts [3, 8, 8] init = ones from "h.2.experts.{row}.w" in "layers.2"{{$}}
    hydra.param @experts [3, D, D] init = ones from "h.{layer}.experts.{row}.w"
    // CHECK-NEXT: hydra.param @b [D] init = constant(5.000000e-01 * layer) when layer >= 1 and layer <= L - 2
    // BOUND-NEXT: hydra.param @b [8] init = constant(5.000000e-01 * layer) when layer >= 1 and layer <= 1
    hydra.param @b [D] init = constant(0.5 * layer) when layer >= 1 and layer <= L - 2
    // CHECK-NEXT: hydra.param @f [D] init = shuffle(pow(D, -index / D))
    // BOUND-NEXT: hydra.param @f [8] init = shuffle(pow(8, -index / 8))
    hydra.param @f [D] init = shuffle(pow(D, -index / D))
  }
  // CHECK-NEXT: }

  // CHECK-NEXT: hydra.def @twice(%arg0) {
  // CHECK-NEXT:   %0 = hydra.add %arg0, %arg0
  // CHECK-NEXT:   hydra.yield %0
  // CHECK-NEXT: }
  // BOUND-NOT:  hydra.def
  hydra.def @twice(%x) {
    %y = hydra.add %x, %x
    hydra.yield %y
  }

  // CHECK-NEXT: hydra.entry @control(%tokens: [B, S] i32, %scale: [] f32) dims(B, S) {
  // BOUND:      hydra.entry @control(%tokens: tensor<2x8xi32>, %scale: tensor<f32>) ids(11, 0) {
  hydra.entry @control(%tokens: [B, S] i32, %scale: [] f32) dims(B, S) {
    // CHECK-NEXT: %table = hydra.use @table
    // BOUND-NEXT: %table = hydra.use @table : tensor<11x8xf32>
    %table = hydra.use @table
    // BOUND-NEXT: %[[X:.*]] = hydra.embedding %tokens, %table : tensor<2x8xi32>, tensor<11x8xf32>
    %x = hydra.embedding %tokens, %table
    // BOUND-NEXT: %steps = hydra.use @steps : tensor<i32>
    %steps = hydra.use @steps
    %one = hydra.constant value = 1 dtype = i32
    %next = hydra.add %steps, %one
    // CHECK:      hydra.for @layers carry(%[[H:.*]] = %{{.*}}, %[[T:.*]] = %scale) {
    // BOUND:      hydra.for @layers carry(%[[H:.*]] = %[[X]], %[[T:.*]] = %scale) : tensor<2x8x8xf32>, tensor<f32> {
    %y:2 = hydra.for @layers carry(%h = %x, %t = %scale) {
      %w = hydra.use @w
      %e = hydra.use @experts
      %f = hydra.use @f
      %a = hydra.linear %h, %w
      %g = hydra.mul %a, %f
      // CHECK:      hydra.when layer >= 1 and layer <= L - 2 {
      // BOUND:      hydra.when layer >= 1 and layer <= 1 : tensor<2x8x8xf32> {
      %c = hydra.when layer >= 1 and layer <= L - 2 {
        %b = hydra.use @b
        %d = hydra.add %g, %b
        // CHECK:      hydra.yield %{{.*}}
        // BOUND:      hydra.yield %{{.*}} : tensor<2x8x8xf32>
        hydra.yield %d
      // CHECK-NEXT: } else {
      // BOUND-NEXT: } else {
      } else {
        hydra.yield %g
      }
      hydra.yield %c, %t
    }
    // CHECK:      hydra.call @twice(%{{.*}}#0)
    // BOUND-NOT:  hydra.call
    %z = hydra.call @twice(%y#0)
    // CHECK-NEXT: hydra.when mode == slow or not wide {
    // BOUND-NOT:  hydra.when
    hydra.when mode == slow or not wide {
      %unused = hydra.neg %z
    }
    // CHECK:      hydra.return x = %{{.*}}, "two words" = %{{.*}}#1 updates(@steps = %{{.*}})
    // BOUND:      hydra.return x = %{{.*}}, "two words" = %{{.*}}#1 updates(@steps = %{{.*}}) : tensor<2x8x8xf32>, tensor<f32>, tensor<i32>
    hydra.return x = %z, "two words" = %y#1 updates(@steps = %next)
  }

  // CHECK-LABEL: hydra.entry @elementwise
  // BOUND-LABEL: hydra.entry @elementwise
  hydra.entry @elementwise(%x: [B, D] f32, %y: [B, D] f32, %low: [B, D] bf16) dims(B) {
    // CHECK-NEXT: hydra.constant value = eps * 2
    // BOUND-NEXT: hydra.constant value = 2.000000e-05 : tensor<f32>
    %c = hydra.constant value = eps * 2
    // CHECK-NEXT: hydra.constant dtype = bf16 shape = [B, D] value = 1
    // BOUND-NEXT: hydra.constant dtype = bf16 shape = [2, 8] value = 1 : tensor<2x8xbf16>
    %ones = hydra.constant value = 1 shape = [B, D] dtype = bf16
    // CHECK-NEXT: hydra.iota axis = 1 shape = [B, D]
    // BOUND-NEXT: hydra.iota axis = 1 shape = [2, 8] : tensor<2x8xi32>
    %i = hydra.iota shape = [B, D] axis = 1
    // CHECK-NEXT: %[[F:.*]] = hydra.iota axis = 0 dtype = f32 shape = [D]
    // BOUND-NEXT: hydra.iota axis = 0 dtype = f32 shape = [8] : tensor<8xf32>
    %f = hydra.iota shape = [D] axis = 0 dtype = f32
    // CHECK-NEXT: hydra.neg %x
    // BOUND-NEXT: hydra.neg %x : tensor<2x8xf32>
    %0 = hydra.neg %x
    // CHECK-NEXT: hydra.exp
    // BOUND-NEXT: hydra.exp
    %1 = hydra.exp %0
    // CHECK-NEXT: hydra.log
    // BOUND-NEXT: hydra.log
    %2 = hydra.log %1
    // CHECK-NEXT: hydra.sqrt
    // BOUND-NEXT: hydra.sqrt
    %3 = hydra.sqrt %1
    // CHECK-NEXT: hydra.rsqrt
    // BOUND-NEXT: hydra.rsqrt
    %4 = hydra.rsqrt %1
    // CHECK-NEXT: hydra.tanh
    // BOUND-NEXT: hydra.tanh
    %5 = hydra.tanh %2
    // CHECK-NEXT: hydra.erf
    // BOUND-NEXT: hydra.erf
    %erf = hydra.erf %3
    // CHECK-NEXT: hydra.sigmoid
    // BOUND-NEXT: hydra.sigmoid
    %6 = hydra.sigmoid %3
    // CHECK-NEXT: hydra.silu
    // BOUND-NEXT: hydra.silu
    %7 = hydra.silu %4
    // CHECK-NEXT: hydra.gelu
    // BOUND-NEXT: hydra.gelu
    %8 = hydra.gelu %5
    // CHECK-NEXT: hydra.add %{{.*}}, %[[F]]
    // BOUND-NEXT: %[[F:.*]] = hydra.broadcast %{{.*}} shape = [2, 8] : tensor<8xf32>
    // BOUND-NEXT: hydra.add %{{.*}}, %[[F]] : tensor<2x8xf32>, tensor<2x8xf32>
    %9 = hydra.add %6, %f
    // CHECK-NEXT: hydra.sub
    // BOUND-NEXT: hydra.sub %{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<2x8xf32>
    %10 = hydra.sub %7, %8
    // CHECK-NEXT: hydra.mul
    // BOUND-NEXT: hydra.mul
    %11 = hydra.mul %9, %10
    // CHECK-NEXT: hydra.div
    // BOUND-NEXT: hydra.div
    %12 = hydra.div %11, %y
    // CHECK-NEXT: hydra.max
    // BOUND-NEXT: hydra.max
    %13 = hydra.max %12, %x
    // CHECK-NEXT: hydra.min
    // BOUND-NEXT: hydra.broadcast %{{.*}} shape = [2, 8] : tensor<f32>
    // BOUND-NEXT: hydra.min
    %14 = hydra.min %13, %c
    // CHECK-NEXT: hydra.compare %{{.*}}, %{{.*}} is = "lt"
    // BOUND-NEXT: %[[TRUTH:.*]] = hydra.compare %{{.*}}, %{{.*}} is = "lt" : tensor<2x8xf32>, tensor<2x8xf32>
    %15 = hydra.compare %x, %y is = "lt"
    // CHECK-NEXT: hydra.select
    // BOUND-NEXT: hydra.select %[[TRUTH]], %{{.*}}, %{{.*}} : tensor<2x8xi1>, tensor<2x8xf32>, tensor<2x8xf32>
    %16 = hydra.select %15, %14, %x
    // CHECK-NEXT: hydra.cast %{{.*}} to = bf16
    // BOUND-NEXT: hydra.cast %{{.*}} to = bf16 : tensor<2x8xf32>
    %17 = hydra.cast %16 to = bf16
    %18 = hydra.add %17, %low
    %19 = hydra.mul %18, %ones
    hydra.return a = %19, b = %i
  }

  // CHECK-LABEL: hydra.entry @shapes
  // BOUND-LABEL: hydra.entry @shapes
  hydra.entry @shapes(%x: [B, D] f32, %rows: [B, S, D] f32) dims(B, S) {
    // CHECK-NEXT: hydra.broadcast %x shape = [S, B, D]
    // BOUND-NEXT: hydra.broadcast %x shape = [8, 2, 8] : tensor<2x8xf32>
    %0 = hydra.broadcast %x shape = [S, B, D]
    // CHECK-NEXT: hydra.reshape %{{.*}} shape = [B * S, H, hd]
    // BOUND-NEXT: hydra.reshape %{{.*}} shape = [16, 2, 4] : tensor<8x2x8xf32>
    %1 = hydra.reshape %0 shape = [B * S, H, hd]
    // CHECK-NEXT: hydra.transpose %{{.*}} order = [1, 0, 2]
    // BOUND-NEXT: hydra.transpose %{{.*}} order = [1, 0, 2] : tensor<16x2x4xf32>
    %2 = hydra.transpose %1 order = [1, 0, 2]
    // CHECK-NEXT: hydra.slice %{{.*}} axis = 1 size = S - 1 start = 1
    // BOUND-NEXT: hydra.slice %{{.*}} axis = 1 size = 7 start = 1 : tensor<2x16x4xf32>
    %3 = hydra.slice %2 axis = 1 start = 1 size = S - 1
    // CHECK-NEXT: hydra.copy
    // BOUND-NEXT: hydra.copy %{{.*}} : tensor<2x7x4xf32>
    %4 = hydra.copy %3
    // CHECK-NEXT: hydra.concat %{{.*}}, %{{.*}}, %{{.*}} axis = 1
    // BOUND-NEXT: hydra.concat %{{.*}}, %{{.*}}, %{{.*}} axis = 1 : tensor<2x7x4xf32>, tensor<2x7x4xf32>, tensor<2x16x4xf32>
    %5 = hydra.concat %3, %4, %2 axis = 1
    // CHECK-NEXT: hydra.pad %{{.*}} after = 0 axis = 0 before = 2
    // BOUND-NEXT: hydra.pad %{{.*}} after = 0 axis = 0 before = 2 : tensor<2x30x4xf32>
    %6 = hydra.pad %5 axis = 0 before = 2 after = 0
    // CHECK-NEXT: hydra.sum %{{.*}} axes = [0, -1] keep
    // BOUND-NEXT: hydra.sum %{{.*}} axes = [0, -1] keep : tensor<4x30x4xf32>
    %7 = hydra.sum %6 axes = [0, -1] keep
    // CHECK-NEXT: hydra.mean %{{.*}} axes = [1]
    // BOUND-NEXT: hydra.mean %{{.*}} axes = [1] : tensor<1x30x1xf32>
    %8 = hydra.mean %7 axes = [1]
    // CHECK-NEXT: hydra.reduce_max %{{.*}} axes = [2]
    // BOUND-NEXT: hydra.reduce_max %{{.*}} axes = [2] : tensor<2x8x8xf32>
    %9 = hydra.reduce_max %rows axes = [2]
    // BOUND-NEXT: hydra.return a = %{{.*}}, b = %{{.*}} : tensor<1x1xf32>, tensor<2x8xf32>
    hydra.return a = %8, b = %9
  }

  // CHECK-LABEL: hydra.entry @rows
  // BOUND-LABEL: hydra.entry @rows
  hydra.entry @rows(%x: [B, S, D] f32, %w: [D] f32, %b: [D] f32, %heads: [B, S, H, hd] f32,
                    %wide: [B, S, D] f32) dims(B, S) {
    // CHECK-NEXT: hydra.rms_norm %x, %w eps = eps
    // BOUND-NEXT: hydra.rms_norm %x, %w eps = 1.000000e-05 : tensor<2x8x8xf32>, tensor<8xf32>
    %0 = hydra.rms_norm %x, %w eps = eps
    // CHECK-NEXT: hydra.layer_norm %{{.*}}, %w, %b eps = 1.000000e-05
    // BOUND-NEXT: hydra.layer_norm %{{.*}}, %w, %b eps = 1.000000e-05 : tensor<2x8x8xf32>, tensor<8xf32>, tensor<8xf32>
    %1 = hydra.layer_norm %0, %w, %b eps = 1.0e-5
    // CHECK-NEXT: hydra.softmax
    // BOUND-NEXT: hydra.softmax %{{.*}} : tensor<2x8x8xf32>
    %2 = hydra.softmax %1
    // CHECK-NEXT: hydra.softmax_grad %x, %
    // BOUND-NEXT: hydra.softmax_grad %x, %{{.*}} : tensor<2x8x8xf32>, tensor<2x8x8xf32>
    %3 = hydra.softmax_grad %x, %2
    %r = hydra.mean %x axes = [2]
    // CHECK:      hydra.rms_norm_grad %{{.*}}, %x, %w, %
    // BOUND:      hydra.rms_norm_grad %{{.*}}, %x, %w, %{{.*}} : tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<8xf32>, tensor<2x8xf32>
    %dx, %dw = hydra.rms_norm_grad %3, %x, %w, %r
    // CHECK-NEXT: hydra.layer_norm_grad %{{.*}}, %x, %w, %[[R:.*]], %[[R]]
    // BOUND-NEXT: hydra.layer_norm_grad %{{.*}}, %x, %w, %[[R:.*]], %[[R]] : tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
    %ex, %ew, %eb = hydra.layer_norm_grad %dx, %x, %w, %r, %r
    // CHECK-NEXT: hydra.rope %heads base = 1.000000e+04
    // BOUND-NEXT: %[[Q:.*]] = hydra.rope %heads base = 1.000000e+04 : tensor<2x8x2x4xf32>
    %q = hydra.rope %heads base = 1.0e4
    // CHECK-NEXT: hydra.rope %heads base = 5.000000e+05 half_split inverse period = S / 2
    // BOUND-NEXT: hydra.rope %heads base = 5.000000e+05 half_split inverse period = 4 : tensor<2x8x2x4xf32>
    %k = hydra.rope %heads base = 5.0e5 half_split inverse period = S / 2
    // CHECK-NEXT: hydra.attention %{{.*}}, %{{.*}}, %heads causal scale = 1 / sqrt(hd)
    // BOUND-NEXT: hydra.attention %{{.*}}, %{{.*}}, %heads causal scale = 5.000000e-01 : tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>
    %o = hydra.attention %q, %k, %heads scale = 1 / sqrt(hd) causal
    // CHECK-NEXT: hydra.attention %{{.*}} cap = 3.000000e+01 / hd causal chunk = 4 scale = 1.000000e+00 window = 3
    // BOUND-NEXT: hydra.attention %{{.*}} cap = 7.500000e+00 causal chunk = 4 scale = 1.000000e+00 window = 3 :
    %o2 = hydra.attention %q, %k, %o scale = 1.0 cap = 30.0 / hd causal chunk = 4 window = 3
    %slots = hydra.constant value = 0.0 shape = [B, 2, 2 * S, hd]
    %position = hydra.constant value = 3.0 shape = [B]
    // CHECK: hydra.cached_attention %{{.*}}, %heads, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} cap = 5.000000e+01 chunk = 4 scale = 1.000000e+00 window = 3
    // BOUND: hydra.cached_attention %{{.*}} cap = 5.000000e+01 chunk = 4 scale = 1.000000e+00 window = 3 : {{.*}}, tensor<2x2x16x4xf32>, tensor<2x2x16x4xf32>, tensor<2xf32>
    %o3, %keys, %values = hydra.cached_attention %q, %heads, %o2, %slots, %slots, %position scale = 1.0 cap = 50.0 chunk = 4 window = 3
    %all = hydra.constant value = 0.5 shape = [B, 40]
    %some = hydra.let iota(axis = 0, shape = [B, 3])
    %bits = hydra.let iota(axis = 0, shape = [B, 2])
    %settings = hydra.constant value = 1.0 shape = [B, 5]
    %words = hydra.let iota(axis = 0, shape = [B, 4])
    // CHECK: hydra.sample %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}
    // BOUND: %{{.*}}, %{{.*}} = hydra.sample %{{.*}} : tensor<2x40xf32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    %token, %seen = hydra.sample %all, %some, %bits, %position, %settings, %words
    %t = hydra.transpose %o2 order = [0, 2, 1, 3]
    %lse = hydra.mean %t axes = [3]
    // CHECK:      hydra.attention_grad %{{.*}} cap = 5.000000e+01 scale = 2
    // BOUND:      hydra.attention_grad %{{.*}} cap = 5.000000e+01 scale = 2 : tensor<2x8x2x4xf32>, {{.*}}, tensor<2x2x8xf32>
    %dq, %dk, %dv = hydra.attention_grad %o2, %q, %k, %o, %o2, %lse scale = 2 cap = 50.0
    hydra.return a = %ex, b = %ew, c = %eb, d = %dw, e = %dq, f = %dk, g = %dv
  }

  // CHECK-LABEL: hydra.entry @transforms
  // BOUND-LABEL: hydra.entry @transforms
  hydra.entry @transforms(%x: [B, D] f32) dims(B) {
    // CHECK-NEXT: %[[S:.*]] = hydra.rfft %x{{$}}
    // BOUND-NEXT: %[[S:.*]] = hydra.rfft %x : tensor<2x8xf32>
    %s = hydra.rfft %x
    // CHECK-NEXT: hydra.irfft %[[S]]{{$}}
    // BOUND-NEXT: hydra.irfft %[[S]] : tensor<2x5x2xf32>
    %y = hydra.irfft %s
    // CHECK-NEXT: hydra.irfft %[[S]] real_ends
    // BOUND-NEXT: hydra.irfft %[[S]] real_ends : tensor<2x5x2xf32>
    %z = hydra.irfft %s real_ends
    hydra.return y = %y, z = %z
  }

  // CHECK-LABEL: hydra.entry @recurrences
  // BOUND-LABEL: hydra.entry @recurrences
  hydra.entry @recurrences(%x: [B, 3, D] f32, %q: [D, 5] f32, %begins: [B, 3, 1] f32) dims(B) {
    // CHECK-NEXT: %[[Y:.*]] = hydra.linear_recurrence %x, %q, %q, %q, %q{{$}}
    // BOUND-NEXT: %[[Y:.*]] = hydra.linear_recurrence %x, %q, %q, %q, %q : tensor<2x3x8xf32>, {{.*}}, tensor<8x5xf32>
    %y = hydra.linear_recurrence %x, %q, %q, %q, %q
    // CHECK-NEXT: hydra.linear_recurrence %x, %q, %q, %q, %q, %begins
    // BOUND-NEXT: hydra.linear_recurrence {{.*}}, %begins : {{.*}}, tensor<2x3x1xf32>
    %z = hydra.linear_recurrence %x, %q, %q, %q, %q, %begins
    // CHECK-NEXT: %dx, %dq_re, %dq_im, %dc_re, %dc_im = hydra.linear_recurrence_grad %[[Y]], %x, %q, %q, %q, %q
    // BOUND-NEXT: %dx, %dq_re, %dq_im, %dc_re, %dc_im = hydra.linear_recurrence_grad %[[Y]], %x, %q, %q, %q, %q : tensor<2x3x8xf32>
    %dx, %dqr, %dqi, %dcr, %dci = hydra.linear_recurrence_grad %y, %x, %q, %q, %q, %q
    hydra.return z = %z, a = %dx, b = %dqr, c = %dqi, d = %dcr, e = %dci
  }

  // CHECK-LABEL: hydra.entry @groups
  // BOUND-LABEL: hydra.entry @groups
  hydra.entry @groups(%x: [B, D] f32, %w: [3, F, D] f32, %scores: [B, 3] f32) dims(B) {
    // CHECK-NEXT: %[[MASK:.*]] = hydra.top_k %scores k = 2
    // BOUND-NEXT: %[[MASK:.*]] = hydra.top_k %scores k = 2 : tensor<2x3xf32>
    %mask = hydra.top_k %scores k = 2
    // CHECK-NEXT: %[[INDEX:.*]], %[[GROUP:.*]], %[[PLACE:.*]], %[[OFFSETS:.*]] = hydra.route %[[MASK]] k = 2
    // BOUND-NEXT: %[[INDEX:.*]], %[[GROUP:.*]], %[[PLACE:.*]], %[[OFFSETS:.*]] = hydra.route %[[MASK]] k = 2 : tensor<2x3xi1>
    %index, %group, %place, %offsets = hydra.route %mask k = 2
    // CHECK-NEXT: %[[SORTED:.*]] = hydra.take_rows %x, %[[INDEX]], %[[PLACE]]
    // BOUND-NEXT: %[[SORTED:.*]] = hydra.take_rows %x, %[[INDEX]], %[[PLACE]] : tensor<2x8xf32>, tensor<4xi32>, tensor<2x2xi32>
    %sorted = hydra.take_rows %x, %index, %place
    // CHECK-NEXT: %[[Y:.*]] = hydra.grouped_linear %[[SORTED]], %w, %[[OFFSETS]] compute = tf32
    // BOUND-NEXT: %[[Y:.*]] = hydra.grouped_linear %[[SORTED]], %w, %[[OFFSETS]] compute = tf32 : tensor<4x8xf32>, tensor<3x12x8xf32>, tensor<4xi32>
    %y = hydra.grouped_linear %sorted, %w, %offsets compute = tf32
    // CHECK-NEXT: hydra.grouped_linear %[[Y]], %w, %[[OFFSETS]] transposed
    // BOUND-NEXT: hydra.grouped_linear %[[Y]], %w, %[[OFFSETS]] transposed : tensor<4x12xf32>, tensor<3x12x8xf32>, tensor<4xi32>
    %z = hydra.grouped_linear %y, %w, %offsets transposed
    // CHECK-NEXT: hydra.grouped_outer %[[Y]], %[[SORTED]], %[[OFFSETS]]
    // BOUND-NEXT: hydra.grouped_outer %[[Y]], %[[SORTED]], %[[OFFSETS]] : tensor<4x12xf32>, tensor<4x8xf32>, tensor<4xi32>
    %c = hydra.grouped_outer %y, %sorted, %offsets
    // CHECK-NEXT: hydra.take_rows %{{.*}}, %[[PLACE]], %[[INDEX]]
    // BOUND-NEXT: hydra.take_rows %{{.*}}, %[[PLACE]], %[[INDEX]] : tensor<4x8xf32>, tensor<2x2xi32>, tensor<4xi32>
    %back = hydra.take_rows %z, %place, %index
    %four = hydra.constant value = 4.0
    // CHECK: hydra.count_exponents %x, %[[Y]] count = 2 * D first = -8
    // BOUND: hydra.count_exponents %x, %[[Y]] count = 16 first = -8 : tensor<2x8xf32>, tensor<4x12xf32>
    %counts = hydra.count_exponents %x, %y first = -8 count = 2 * D
    // CHECK: hydra.count_exponents %{{.*}}, %x count = 1 first = 0 scaled
    // BOUND: hydra.count_exponents %{{.*}}, %x count = 1 first = 0 scaled : tensor<f32>, tensor<2x8xf32>
    %all = hydra.count_exponents %four, %x scaled first = 0 count = 1
    hydra.return y = %back, c = %c, group = %group, counts = %counts, all = %all
  }

  // CHECK-LABEL: hydra.entry @products
  // BOUND-LABEL: hydra.entry @products
  hydra.entry @products(%tokens: [B, S] i32, %x: [B, S, D] f32, %w: [F, D] f32, %b: [F] f32,
                        %lr: [] f32, %step: [] i32) dims(B, S) {
    // CHECK-NEXT: hydra.linear %x, %w
    // BOUND-NEXT: hydra.linear %x, %w : tensor<2x8x8xf32>, tensor<12x8xf32>
    %0 = hydra.linear %x, %w
    // CHECK-NEXT: hydra.linear %x, %w, %b
    // BOUND-NEXT: hydra.linear %x, %w, %b : tensor<2x8x8xf32>, tensor<12x8xf32>, tensor<12xf32>
    %1 = hydra.linear %x, %w, %b
    // CHECK-NEXT: hydra.matmul %{{.*}}, %{{.*}} transpose_a
    // BOUND-NEXT: hydra.matmul %{{.*}}, %{{.*}} transpose_a : tensor<2x8x12xf32>, tensor<2x8x12xf32>
    %2 = hydra.matmul %0, %1 transpose_a
    // CHECK-NEXT: hydra.matmul %{{.*}}, %{{.*}} transpose_b
    // BOUND-NEXT: hydra.matmul %{{.*}}, %{{.*}} transpose_b : tensor<2x12x12xf32>, tensor<2x8x12xf32>
    %3 = hydra.matmul %2, %1 transpose_b
    %table = hydra.use @table
    // CHECK:      hydra.embedding_grad %tokens, %x rows = V
    // BOUND:      hydra.embedding_grad %tokens, %x rows = 11 : tensor<2x8xi32>, tensor<2x8x8xf32>
    %g = hydra.embedding_grad %tokens, %x rows = V
    %z = hydra.linear %x, %table
    // CHECK:      hydra.cross_entropy %{{.*}}, %tokens
    // BOUND:      hydra.cross_entropy %{{.*}}, %tokens : tensor<2x8x11xf32>, tensor<2x8xi32>
    %loss = hydra.cross_entropy %z, %tokens
    %lse = hydra.reduce_max %z axes = [-1]
    // CHECK:      hydra.cross_entropy_grad %{{.*}}, %{{.*}}, %tokens, %
    // BOUND:      hydra.cross_entropy_grad %{{.*}}, %{{.*}}, %tokens, %{{.*}} : tensor<f32>, tensor<2x8x11xf32>, tensor<2x8xi32>, tensor<2x8xf32>
    %dz = hydra.cross_entropy_grad %loss, %z, %tokens, %lse
    // CHECK-NEXT: hydra.linear_cross_entropy %x, %table, %tokens
    // BOUND-NEXT: hydra.linear_cross_entropy %x, %table, %tokens : tensor<2x8x8xf32>, tensor<11x8xf32>, tensor<2x8xi32>
    %same = hydra.linear_cross_entropy %x, %table, %tokens
    // CHECK-NEXT: hydra.linear_cross_entropy %x, %table, %tokens, %lr
    // BOUND-NEXT: hydra.linear_cross_entropy %x, %table, %tokens, %lr : tensor<2x8x8xf32>, tensor<11x8xf32>, tensor<2x8xi32>, tensor<f32>
    %share = hydra.linear_cross_entropy %x, %table, %tokens, %lr
    // CHECK-NEXT: hydra.global_norm %{{.*}}, %{{.*}}
    // BOUND-NEXT: hydra.global_norm %{{.*}}, %{{.*}} : tensor<11x8xf32>, tensor<2x8x11xf32>
    %n = hydra.global_norm %g, %dz
    // CHECK-NEXT: hydra.adamw %table, %{{.*}}, %{{.*}}, %{{.*}}, %lr, %step, %{{.*}} beta1 = 9.000000e-01 beta2 = {{.*}} eps = eps lr_scale = 1 wd = 0
    // BOUND-NEXT: hydra.adamw %table, {{.*}} eps = 1.000000e-05 lr_scale = 1 wd = 0 : tensor<11x8xf32>, {{.*}}, tensor<f32>, tensor<i32>, tensor<f32>
    %p1, %m1, %v1 = hydra.adamw %table, %table, %table, %g, %lr, %step, %n
                      beta1 = 0.9 beta2 = 0.95 eps = eps wd = 0 lr_scale = 1
    // CHECK-NEXT: hydra.sgd %table, %{{.*}}, %{{.*}}, %lr, %{{.*}} lr_scale = 1 momentum = 9.000000e-01 nesterov wd = 0
    // BOUND-NEXT: hydra.sgd %table, {{.*}} nesterov wd = 0 : tensor<11x8xf32>, {{.*}}, tensor<f32>, tensor<f32>
    %p2, %b2 = hydra.sgd %table, %table, %g, %lr, %n momentum = 0.9 wd = 0 lr_scale = 1 nesterov
    // CHECK-NEXT: hydra.sgd %table, %{{.*}}, %lr lr_scale = 1 wd = eps
    // BOUND-NEXT: hydra.sgd %table, %{{.*}}, %lr lr_scale = 1 wd = 1.000000e-05 : tensor<11x8xf32>, tensor<11x8xf32>, tensor<f32>
    %p3 = hydra.sgd %table, %g, %lr wd = eps lr_scale = 1
    // CHECK-NEXT: hydra.lion %table, %{{.*}}, %{{.*}}, %lr, %{{.*}} beta1 = 9.000000e-01 beta2 = {{.*}} lr_scale = 1 wd = 0
    // BOUND-NEXT: hydra.lion %table, {{.*}} wd = 0 : tensor<11x8xf32>, {{.*}}, tensor<f32>, tensor<f32>
    %p4, %m4 = hydra.lion %table, %table, %g, %lr, %n beta1 = 0.9 beta2 = 0.99 wd = 0 lr_scale = 1
    // CHECK-NEXT: hydra.muon %table, %{{.*}}, %{{.*}}, %lr lr_scale = 1 wd = eps
    // BOUND-NEXT: hydra.muon %table, {{.*}} lr_scale = 1 wd = 1.000000e-05 : tensor<11x8xf32>, tensor<11x8xf32>, tensor<f32>, tensor<f32>
    %p5 = hydra.muon %table, %g, %n, %lr wd = eps lr_scale = 1
    // CHECK-NEXT: hydra.adafactor %table, %{{.*}}, %{{.*}}, %lr lr_scale = 1 wd = 0
    // BOUND-NEXT: hydra.adafactor %table, {{.*}} lr_scale = 1 wd = 0 : tensor<11x8xf32>, tensor<11x8xf32>, tensor<f32>, tensor<f32>
    %p6 = hydra.adafactor %table, %g, %n, %lr wd = 0 lr_scale = 1
    %truth = hydra.compare %lr, %n is = "lt"
    // CHECK:      hydra.guard %{{.*}}, %{{.*}}, %table
    // BOUND:      hydra.guard %{{.*}}, %{{.*}}, %table : tensor<i1>, tensor<11x8xf32>, tensor<11x8xf32>
    %kept = hydra.guard %truth, %p2, %table
    hydra.return loss = %same, share = %share, three = %3, m = %m1, v = %v1, s = %p3, b = %b2, kept = %kept, four = %p4, five = %p5, six = %p6 updates(@table = %p1)
  }

  hydra.entry @rest() {
    %half = hydra.use @half
    %absent = hydra.when tied {
      %w = hydra.use @absent
      hydra.yield %w
    } else {
      %w = hydra.cast %half to = f32
      hydra.yield %w
    }
    hydra.when kind == b {
    }
    // CHECK:      hydra.return
    // BOUND:      hydra.return
    hydra.return
  }
}
