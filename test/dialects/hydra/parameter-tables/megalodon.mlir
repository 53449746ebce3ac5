// Megalodon, parameters only: TimestepNorm, complex moving average, gated chunk attention.
// models.md sections 5.2 to 5.8.
//
// Every preset has as many parameters as models.md prints.
//
// DEFINE: %{count} = --hydra-unroll-layers | awk -f %S/Inputs/count-parameters.awk -v
//
// RUN: hydra-opt %s --hydra-bind="preset=mega200M" %{count} want=220627968
// RUN: hydra-opt %s --hydra-bind="preset=mega1.3B" %{count} want=1342832640
// RUN: hydra-opt %s --hydra-bind="preset=mega1.3B-pg19" %{count} want=1327628288
// RUN: hydra-opt %s --hydra-bind="preset=mega7.1B" %{count} want=7117381632
// RUN: hydra-opt %s --hydra-bind="preset=mega7.3B" %{count} want=7385817088
// RUN: hydra-opt %s --hydra-bind="preset=paper-7B" %{count} want=7385817088
// RUN: hydra-opt %s --hydra-bind="preset=profile-train" %{count} want=8901504
//
// No count is printed for the profile of inference; at V = 256 the shapes give this one.
// RUN: hydra-opt %s --hydra-bind="preset=profile-infer" %{count} want=18134016
//
// RUN: hydra-opt %s --hydra-bind="preset=profile-train" --hydra-unroll-layers | FileCheck %s
// RUN: hydra-opt %s --hydra-bind="preset=mega7.3B" --hydra-unroll-layers \
// RUN:   | FileCheck %s --check-prefix=SWIGLU
//
// The frequencies D^(-i/D), i = 1 … D, stay an expression of the element's index, in random order.
// CHECK:       hydra.param @layers.5.theta [384]
// CHECK-SAME:  init = shuffle(logit(clamp(pow(384, -(index + 1.000000e+00) / 384), 9.9999999999999995E-7, 0.99999899999999997)))
// CHECK:       hydra.param @layers.5.omega [384] init = trunc_normal(2.500000e-01, 4.000000e+00)
// CHECK:       hydra.param @layers.5.fc2
// CHECK-NOT:   fc3
// CHECK-NOT:   @lm_head

// SWIGLU:      hydra.param @layers.31.fc3 [8192, 4096]
// SWIGLU:      hydra.param @norm_b
// SWIGLU-NEXT: hydra.param @lm_head [32000, 4096] init = trunc_normal(1.562500e-02, 3.000000e+00)

hydra.model @megalodon version 1 {
  hydra.symbols dims(V = 32000, D, L, H, z, v, F, N = 16, Cs, G)
                reals(eps = 1.0e-5, rope = 1.0e4)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                flags(swiglu = false, tied = false, scale_emb = false)

  hydra.preset @mega200M
      {D = 1024, L = 12, H = 1, z = 256,  v = 2048, F = 2560,  Cs = 2048, G = 32}
  hydra.preset @"mega1.3B"
      {D = 2048, L = 24, H = 2, z = 512,  v = 4096, F = 4864,  Cs = 2048, G = 64}
  hydra.preset @"mega1.3B-pg19"
      {D = 2048, L = 24, H = 2, z = 512,  v = 4096, F = 3584,  Cs = 2048, G = 64, swiglu = true,
       tied = true, scale_emb = true}
  hydra.preset @"mega7.1B"
      {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 11264, Cs = 2048, G = 64}
  hydra.preset @"mega7.3B"
      {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 8192,  Cs = 2048, G = 64, swiglu = true}
  hydra.preset @"paper-7B"
      {D = 4096, L = 32, H = 4, z = 1024, v = 8192, F = 8192,  Cs = 4096, G = 64, swiglu = true,
       rope = 1.0e5}
  hydra.preset @"profile-train"
      {D = 384,  L = 6,  H = 3, z = 192,  v = 384,  F = 1024,  Cs = 512,  G = 32, tied = true, N = 8,
       V = 256, adam_eps = 1.0e-6}
  hydra.preset @"profile-infer"
      {D = 512,  L = 4,  H = 8, z = 1024, v = 1024, F = 2048,  Cs = 256,  G = 32, tied = true,
       V = 256}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @embed [V, D] init = trunc_normal(1 / sqrt(D), 3.0)
  hydra.stack @layers[L] {
    // TimestepNorm.
    hydra.param @tn_w     [D]    init = zeros
    hydra.param @tn_b     [D]    init = zeros
    // The moving average.
    hydra.param @alpha    [D, N] init = normal(0.2)
    hydra.param @delta    [D, N] init = normal(0.2)
    hydra.param @theta    [D]
        init = shuffle(logit(clamp(pow(D, -(index + 1.0) / D), 1.0e-6, 1 - 1.0e-6)))
    hydra.param @gamma_re [D, N] init = normal(1.0)
    hydra.param @gamma_im [D, N] init = zeros
    hydra.param @omega    [D]    init = trunc_normal(0.25, 4.0)
    // Attention.
    hydra.param @rms_w    [D]    init = zeros
    hydra.param @wz       [z, D] init = normal(1 / sqrt(3 * D))
    hydra.param @bz       [z]    init = zeros
    hydra.param @wv       [v, D] init = normal(1 / sqrt(3 * D))
    hydra.param @bv       [v]    init = zeros
    hydra.param @wr       [v, D] init = normal(1 / sqrt(3 * D))
    hydra.param @br       [v]    init = zeros
    hydra.param @wh1      [D, D] init = normal(1 / sqrt(3 * D))
    hydra.param @bh1      [D]    init = zeros
    hydra.param @wh2      [D, v] init = normal(1 / sqrt(3 * v))
    hydra.param @qk_gamma [2, z] init = zeros
    hydra.param @qk_beta  [2, z] init = zeros
    // Feed-forward.
    hydra.param @ffn_ln_w [D]    init = zeros
    hydra.param @ffn_ln_b [D]    init = zeros
    hydra.param @fc1      [F, D] init = normal(1 / sqrt(3 * D))
    hydra.param @fc2      [D, F] init = normal(1 / sqrt(3 * F))
    hydra.param @fc3      [F, D] init = normal(1 / sqrt(3 * D)) when swiglu
  }
  hydra.param @norm_w  [D]    init = zeros
  hydra.param @norm_b  [D]    init = zeros
  hydra.param @lm_head [V, D] init = trunc_normal(1 / sqrt(D), 3.0) when not tied
}
