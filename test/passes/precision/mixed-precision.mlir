// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-fuse-qkv --hydra-differentiate="programs=loss" --hydra-mixed-precision="policy=bf16 reduced-reduction" | FileCheck %s --check-prefix=AMP
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-fuse-qkv --hydra-differentiate="programs=loss" --hydra-optimizer="programs=loss clip=false" --hydra-mixed-precision="policy=pure_bf16" | FileCheck %s --check-prefix=PURE
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-fuse-qkv --hydra-differentiate="programs=loss" --hydra-mixed-precision="policy=tf32" | FileCheck %s --check-prefix=TF32
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-unroll-layers --canonicalize --cse --hydra-fuse-qkv --hydra-differentiate="programs=loss loss-scale" --hydra-optimizer="programs=loss" --hydra-mixed-precision="policy=f16" | FileCheck %s --check-prefix=F16
// RUN: not hydra-opt %s --split-input-file --hydra-bind --hydra-mixed-precision="policy=fp4" 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-raise-linear-ce --hydra-mixed-precision="policy=bf16 round-logits" | FileCheck %s --check-prefix=LOGITS
// Logits that only a loss reads may be rounded.
// LOGITS: hydra.linear_cross_entropy %{{.*}} rounded_logits : tensor<{{.*}}xbf16>
// BAD: mixed-precision.mlir:{{.*}} has no precision policy 'fp4'; expected fp32, tf32, bf16, f16, pure_bf16 or fp8{{$}}

// The norm stays f32 and is rounded once, behind it. Parameters side by side are rounded as one.
// Slices, reshapes and rotations between matmuls move and compute bf16.
// AMP-LABEL: hydra.entry @loss
// AMP-DAG: %[[N:.*]], %{{.*}} = hydra.rms_norm %x, %g {{.*}} : tensor<1x4x8xf32>
// AMP-DAG: %[[NL:.*]] = hydra.cast %[[N]] to = bf16
// AMP-DAG: %[[W:.*]] = hydra.concat %wq, %wk, %wv axis = 0 : tensor<8x8xf32>
// AMP-DAG: %[[WL:.*]] = hydra.cast %[[W]] to = bf16
// AMP: %[[QKV:.*]] = hydra.linear %[[NL]], %[[WL]] reduced_reduction : tensor<1x4x8xbf16>, tensor<24x8xbf16>
// AMP-NOT: hydra.cast
// AMP: hydra.rope {{.*}} : tensor<1x4x2x4xbf16>
// AMP: hydra.attention {{.*}} : tensor<1x4x2x4xbf16>
// What an output reads behind additions is not rounded, nor what a loss reads.
// AMP: %[[Y:.*]] = hydra.linear %{{.*}}, %{{.*}} dtype = f32
// AMP: hydra.cross_entropy %[[Y]]{{.*}} : tensor<1x4x8xf32>
// Gradients of parameters are sums in f32; the gradient of attention comes out in bf16.
// AMP: hydra.matmul {{.*}} dtype = f32 reduced_reduction transpose_a : tensor<4x8xbf16>, tensor<4x8xbf16>
// AMP: hydra.attention_grad
// AMP-NOT: to = f32
// AMP: %[[DQKV:.*]] = hydra.concat {{.*}} : tensor<1x4x8xbf16>
// AMP: hydra.rms_norm_grad {{.*}} : tensor<1x4x8xf32>
// AMP: hydra.return loss = {{.*}} : tensor<f32>

// Parameters, moments and what is computed from them are bf16; statistics and the loss are not.
// PURE: hydra.param @wq [8, 8] bf16
// PURE: hydra.state @wq.m [8, 8] bf16
// PURE-LABEL: hydra.entry @loss
// PURE: %{{.*}}, %[[R:.*]] = hydra.rms_norm %{{.*}}, %{{.*}} : tensor<1x4x8xf32>, tensor<8xf32>
// PURE: hydra.attention {{.*}} : tensor<1x4x2x4xbf16>
// PURE: hydra.cross_entropy {{.*}} : tensor<1x4x8xbf16>
// PURE: hydra.adamw {{.*}} : tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<8x8xbf16>
// PURE: hydra.return loss = {{.*}}tensor<f32>

// Matmuls of f32 operands multiply in tf32; nothing else changes.
// TF32-LABEL: hydra.entry @loss
// TF32-NOT: hydra.cast
// TF32: hydra.linear {{.*}} compute = tf32 : tensor<1x4x8xf32>, tensor<24x8xf32>
// TF32: hydra.attention {{.*}} : tensor<1x4x2x4xf32>
// TF32: hydra.matmul {{.*}} compute = tf32 transpose_a : tensor<4x8xf32>, tensor<4x8xf32>
// TF32: hydra.return

// As bf16, with the loss scaled: gradients begin with the scale, and the update divides by it.
// F16: hydra.state @loss_scale [] init = constant({{[^)]*}}) as loss_scaling
// F16: hydra.state @loss_scale.age [] i32 init = constant({{[^)]*}}) as loss_scaling
// F16-LABEL: hydra.entry @loss
// F16: hydra.linear {{.*}} : tensor<1x4x8xf16>, tensor<24x8xf16>
// F16: %[[S:.*]] = hydra.use @loss_scale
// F16: hydra.cross_entropy_grad %[[S]]
// F16: %[[NORM:.*]] = hydra.global_norm
// F16: hydra.mul %[[NORM]]
// F16: hydra.guard
// F16: updates({{.*}}@loss_scale = %{{.*}}, @loss_scale.age = %
hydra.model @m version 1 {
  hydra.param @g [8] init = ones
  hydra.param @wq [8, 8] init = ones
  hydra.param @wk [8, 8] init = ones
  hydra.param @wv [8, 8] init = ones
  hydra.param @wo [8, 8] init = ones
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss(%x: [1, 4, 8] f32, %labels: [1, 4] i32) {
    %g = hydra.use @g
    %wq = hydra.use @wq
    %wk = hydra.use @wk
    %wv = hydra.use @wv
    %wo = hydra.use @wo
    %n = hydra.rms_norm %x, %g eps = 1.0e-5
    %q0 = hydra.linear %n, %wq
    %k0 = hydra.linear %n, %wk
    %v0 = hydra.linear %n, %wv
    %q1 = hydra.reshape %q0 shape = [1, 4, 2, 4]
    %k1 = hydra.reshape %k0 shape = [1, 4, 2, 4]
    %v1 = hydra.reshape %v0 shape = [1, 4, 2, 4]
    %q = hydra.rope %q1 base = 10000
    %k = hydra.rope %k1 base = 10000
    %o = hydra.attention %q, %k, %v1 scale = 0.5 causal
    %o1 = hydra.reshape %o shape = [1, 4, 8]
    %y = hydra.linear %o1, %wo
    %loss = hydra.cross_entropy %y, %labels
    hydra.return loss = %loss
  }
}

// -----

// Without matmuls there is nothing to round.
// AMP-LABEL: hydra.entry @loss
// AMP-NOT: bf16
// AMP: hydra.return
// Constants do not widen what they meet: the matmul with 3 is computed in f32 and rounded.
// PURE-LABEL: hydra.entry @loss
// PURE: %[[WIDE:.*]] = hydra.cast %w to = f32
// PURE: %[[P:.*]] = hydra.mul %[[WIDE]], %{{.*}} : tensor<8xf32>
// PURE: hydra.cast %[[P]] to = bf16
// PURE: hydra.sum {{.*}} : tensor<8xf32>
hydra.model @m version 1 {
  hydra.param @w [8] init = ones
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss() {
    %w = hydra.use @w
    %three = hydra.constant value = 3
    %x = hydra.mul %w, %three
    %y = hydra.silu %x
    %loss = hydra.sum %y axes = [0]
    hydra.return loss = %loss
  }
}

// -----

// A comparison with a constant is computed in f32 and stays a truth value.
// PURE-LABEL: hydra.entry @loss
// PURE: %[[WIDE:.*]] = hydra.cast %w to = f32
// PURE: %[[C:.*]] = hydra.compare %[[WIDE]], %{{.*}} is = "lt"
// PURE-NOT: hydra.cast %[[C]]
// PURE: hydra.select %[[C]]
hydra.model @m version 1 {
  hydra.param @w [8] init = ones
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss() {
    %w = hydra.use @w
    %three = hydra.constant value = 3
    %c = hydra.compare %w, %three is = "lt"
    %x = hydra.silu %w
    %y = hydra.select %c, %x, %w
    %loss = hydra.sum %y axes = [0]
    hydra.return loss = %loss
  }
}

// -----

// A matmul that wants full precision has it, and so have its derivatives; under either policy.
// AMP-LABEL: hydra.entry @loss
// AMP-NOT: bf16
// AMP: hydra.matmul {{.*}}full_precision{{.*}} : tensor<4x4xf32>, tensor<4x4xf32>
// AMP: hydra.matmul {{.*}}full_precision{{.*}} : tensor<4x4xf32>, tensor<4x4xf32>
// AMP-NOT: bf16
// PURE-LABEL: hydra.entry @loss
// PURE: hydra.matmul {{.*}}full_precision{{.*}} : tensor<4x4xf32>, tensor<4x4xf32>
// PURE: hydra.matmul {{.*}}full_precision{{.*}} : tensor<4x4xf32>, tensor<4x4xf32>
hydra.model @m version 1 {
  hydra.param @w [4, 4] init = ones
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss() {
    %w = hydra.use @w
    %z = hydra.matmul %w, %w full_precision
    %loss = hydra.sum %z axes = [0, 1]
    hydra.return loss = %loss
  }
}

// -----

// What a loss is scaled by is never rounded, even where it is a parameter.
// PURE-LABEL: hydra.entry @loss
// PURE: %[[G:.*]] = hydra.cast %g to = f32 : tensor<bf16>
// PURE: hydra.cross_entropy_grad %[[G]], %z, {{.*}} : tensor<f32>, tensor<4x8xbf16>, tensor<4xi32>, tensor<4xf32>
hydra.model @m version 1 {
  hydra.param @g [] init = ones
  hydra.param @z [4, 8] init = ones
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.entry @loss(%labels: [4] i32, %lse: [4] f32) {
    %g = hydra.use @g
    %z = hydra.use @z
    %d = hydra.cross_entropy_grad %g, %z, %labels, %lse
    %fixed = hydra.detach %d
    %y = hydra.mul %fixed, %z
    %loss = hydra.sum %y axes = [0, 1]
    hydra.return loss = %loss
  }
}

// -----

// A rotation of rounded numbers of which a matmul reads the result is of rounded numbers for all that read it.
// AMP-LABEL: hydra.model @rotated
// AMP: %[[R:.*]] = hydra.rope %{{.*}} : tensor<1x4x2x4xbf16>
// AMP: hydra.cast {{.*}} to = f32
// AMP-NOT: hydra.rope {{.*}} : tensor<1x4x2x4xf32>
// AMP: hydra.linear
// AMP: hydra.return
hydra.model @rotated version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.param @w [8, 8] init = ones
  hydra.param @v [8, 8] init = ones
  hydra.entry @loss(%x: [1, 4, 8] f32) {
    %w = hydra.use @w
    %v = hydra.use @v
    %y = hydra.linear %x, %w
    %heads = hydra.reshape %y shape = [1, 4, 2, 4]
    %rotated = hydra.rope %heads base = 1.0e4
    %rows = hydra.reshape %rotated shape = [1, 4, 8]
    %z = hydra.linear %rows, %v
    %squares = hydra.mul %rows, %rows
    %both = hydra.mul %z, %squares
    %loss = hydra.sum %both axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}

// -----

// Given positions are f32, and do not keep what they turn from being rounded.
// AMP-LABEL: hydra.model @placed
// AMP: %[[R:.*]] = hydra.rope %{{.*}}, %at {{.*}} : tensor<1x4x2x4xbf16>, tensor<1x4xf32>
// AMP-NOT: hydra.rope {{.*}} : tensor<1x4x2x4xf32>
// AMP: hydra.return
hydra.model @placed version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.param @w [8, 8] init = ones
  hydra.param @v [8, 8] init = ones
  hydra.entry @loss(%x: [1, 4, 8] f32, %at: [1, 4] f32) {
    %w = hydra.use @w
    %v = hydra.use @v
    %y = hydra.linear %x, %w
    %heads = hydra.reshape %y shape = [1, 4, 2, 4]
    %turned = hydra.rope %heads, %at base = 1.0e4
    %rows = hydra.reshape %turned shape = [1, 4, 8]
    %z = hydra.linear %rows, %v
    %loss = hydra.sum %z axes = [0, 1, 2]
    hydra.return loss = %loss
  }
}
