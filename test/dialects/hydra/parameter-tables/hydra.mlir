// HYDRA, parameters only: compressed grouped attention, Mixture-of-Depths routers in the middle
// blocks, Mixture-of-Recursions routers in all. models.md sections 3.2 to 3.9.
//
// Every preset has as many parameters as models.md prints (in millions), at both widths of the MLP.
//
// DEFINE: %{count} = --hydra-unroll-layers | awk -f %S/Inputs/count-parameters.awk -v
//
// RUN: hydra-opt %s --hydra-bind="preset=debug" %{count} millions=32.5
// RUN: hydra-opt %s --hydra-bind="preset=50M" %{count} millions=52.7
// RUN: hydra-opt %s --hydra-bind="preset=debug_tall_skinny" %{count} millions=42.2
// RUN: hydra-opt %s --hydra-bind="preset=100M" %{count} millions=94.6
// RUN: hydra-opt %s --hydra-bind="preset=DIAG" %{count} millions=94.6
// RUN: hydra-opt %s --hydra-bind="preset=250M" %{count} millions=178.4
// RUN: hydra-opt %s --hydra-bind="preset=300M" %{count} millions=251.1
// RUN: hydra-opt %s --hydra-bind="preset=500M" %{count} millions=626.0
// RUN: hydra-opt %s --hydra-bind="preset=750M" %{count} millions=578.0
// RUN: hydra-opt %s --hydra-bind="preset=1B" %{count} millions=855.7
// RUN: hydra-opt %s --hydra-bind="preset=1.5B" %{count} millions=1177.1
// RUN: hydra-opt %s --hydra-bind="preset=profile-100M" %{count} millions=85.1
// RUN: hydra-opt %s --hydra-bind="preset=profile-100M-as-run" %{count} millions=61.9
//
// RUN: hydra-opt %s --hydra-bind="preset=debug set=F=1536" %{count} millions=30.9
// RUN: hydra-opt %s --hydra-bind="preset=50M set=F=1536" %{count} millions=46.4
// RUN: hydra-opt %s --hydra-bind="preset=debug_tall_skinny set=F=1280" %{count} millions=38.7
// RUN: hydra-opt %s --hydra-bind="preset=100M set=F=2304" %{count} millions=85.1
// RUN: hydra-opt %s --hydra-bind="preset=DIAG set=F=2304" %{count} millions=85.1
// RUN: hydra-opt %s --hydra-bind="preset=250M set=F=2816" %{count} millions=146.9
// RUN: hydra-opt %s --hydra-bind="preset=300M set=F=3328" %{count} millions=208.6
// RUN: hydra-opt %s --hydra-bind="preset=500M set=F=4864" %{count} millions=491.1
// RUN: hydra-opt %s --hydra-bind="preset=750M set=F=4352" %{count} millions=471.9
// RUN: hydra-opt %s --hydra-bind="preset=1B set=F=4864" %{count} millions=663.0
// RUN: hydra-opt %s --hydra-bind="preset=1.5B set=F=5632" %{count} millions=934.9
//
// RUN: hydra-opt %s --hydra-bind="preset=debug_tall_skinny" --hydra-unroll-layers | FileCheck %s
//
// Depth routers start deeper in later blocks: logit(0.2) in the first, logit(0.5) in the last. The
// Mixture-of-Depths router, which starts at logit(kappa), exists in all blocks but these.
// CHECK-NOT:   @layers.0.mod_w
// CHECK:       hydra.param @layers.0.mor_b [1] init = constant(-1.386{{[0-9]+}}) group = @no_decay
// CHECK-NOT:   @layers.0.mod_
// CHECK:       hydra.param @layers.1.qkv [160, 384] init = normal(2.000000e-02) group = @decay
// CHECK:       hydra.param @layers.1.tau [1] init = constant(4.000000e+00) group = @no_decay
// CHECK:       hydra.param @layers.1.mod_w [384] init = normal(2.000000e-02) group = @decay
// CHECK-NEXT:  hydra.param @layers.1.mod_b [1] init = constant(0.000000e+00) group = @no_decay
// CHECK:       hydra.param @layers.10.mod_w
// CHECK:       hydra.param @layers.11.mor_b [1] init = constant(0.000000e+00) group = @no_decay
// CHECK-NOT:   @layers.11.mod_

hydra.model @hydra version 1 {
  hydra.symbols dims(V = 50257, D, C = 4, H, Hk, F, Nb, R, min_depth = 1)
                reals(kappa = 0.5, w_aux, ponder_scale = 0.01, rope = 1.0e4)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                choices(mor = dynamic of (fixed, dynamic, static), mod = topk of (dense, topk, static))
  hydra.derive Lq = D / C   // width of the compressed queries
  hydra.derive hd = Lq / H  // width of a head
  hydra.derive Kd = Hk * hd // width of all key heads
  hydra.derive residual_std = 0.02 / sqrt(2 * Nb * R)

  // F = 256 ceil(int(3.6 D) / 256)
  hydra.preset @debug  {D = 512,  Nb = 2,  R = 2, H = 8,  Hk = 2, F = 2048, w_aux = 0.05}
  hydra.preset @"50M"  {D = 512,  Nb = 8,  R = 3, H = 8,  Hk = 2, F = 2048, w_aux = 0.05}
  hydra.preset @debug_tall_skinny
                       {D = 384,  Nb = 12, R = 2, H = 6,  Hk = 2, F = 1536, w_aux = 0.01}
  hydra.preset @"100M" {D = 768,  Nb = 8,  R = 4, H = 12, Hk = 3, F = 2816, w_aux = 0.1}
  hydra.preset @DIAG   {D = 768,  Nb = 8,  R = 5, H = 12, Hk = 3, F = 2816, w_aux = 0.01}
  hydra.preset @"250M" {D = 1024, Nb = 10, R = 4, H = 16, Hk = 4, F = 3840, w_aux = 0.0173}
  hydra.preset @"300M" {D = 1152, Nb = 12, R = 4, H = 18, Hk = 3, F = 4352, w_aux = 0.02}
  hydra.preset @"500M" {D = 1792, Nb = 14, R = 4, H = 28, Hk = 4, F = 6656, w_aux = 0.025}
  hydra.preset @"750M" {D = 1536, Nb = 18, R = 4, H = 24, Hk = 4, F = 5632, w_aux = 0.0382}
  hydra.preset @"1B"   {D = 1792, Nb = 20, R = 4, H = 28, Hk = 4, F = 6656, w_aux = 0.049}
  hydra.preset @"1.5B" {D = 2048, Nb = 22, R = 4, H = 32, Hk = 4, F = 7424, w_aux = 0.0685}
  // The published profile: ratio 2.67, dense MoD, the optimizer's own defaults.
  hydra.preset @"profile-100M"
      {D = 768, Nb = 8, R = 4, H = 12, Hk = 3, F = 2304, w_aux = 0.5, min_depth = 0, mod = dense,
       beta2 = 0.999, wd = 0.01}
  hydra.preset @"profile-100M-as-run"
      {D = 768, Nb = 4, R = 6, H = 12, Hk = 3, F = 2304, w_aux = 0.5, min_depth = 0, mod = dense,
       beta2 = 0.999, wd = 0.01}

  hydra.group @decay    adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)
  hydra.group @no_decay adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = 0.0)
  hydra.group @embed    adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = 0.0, lr_scale = 0.1)

  hydra.param @tok_emb [V, D] init = normal(0.02) group = @embed
  hydra.stack @layers[Nb] {
    hydra.param @norm1      [D]              init = ones                 group = @no_decay
    hydra.param @qkv        [Lq + 2 * Kd, D] init = normal(0.02)         group = @decay
    hydra.param @q_conv1    [Lq, hd, 3]      init = normal(0.02)         group = @decay
    hydra.param @q_conv2    [Lq, Lq, 3]      init = normal(0.02)         group = @decay
    hydra.param @k_conv1    [Kd, hd, 3]      init = normal(0.02)         group = @decay
    hydra.param @k_conv2    [Kd, Kd, 3]      init = normal(0.02)         group = @decay
    hydra.param @tau        [1]              init = constant(sqrt(hd))   group = @no_decay
    hydra.param @o_proj     [D, Lq]          init = normal(residual_std) group = @decay
    hydra.param @norm2      [D]              init = ones                 group = @no_decay
    hydra.param @gate_up    [2 * F, D]       init = normal(0.02)         group = @decay
    hydra.param @down       [D, F]           init = normal(residual_std) group = @decay
    hydra.param @rec_bias   [R, D]           init = zeros                group = @no_decay
    hydra.param @rec_embed  [R, D]           init = normal(0.02)         group = @embed
    hydra.param @mor_w      [D]              init = normal(0.02)         group = @decay
    hydra.param @mor_b      [1]
        init = constant(logit(0.2 + 0.3 * layer / max(1, Nb - 1)))       group = @no_decay
    // Mixture-of-Depths: not in the first and the last block.
    hydra.param @mod_w      [D]              init = normal(0.02)         group = @decay
        when layer >= 1 and layer <= Nb - 2
    hydra.param @mod_b      [1]
        init = constant(logit(clamp(kappa, 1.0e-4, 1 - 1.0e-4)))         group = @no_decay
        when layer >= 1 and layer <= Nb - 2
    hydra.param @final_norm [D]              init = ones                 group = @no_decay
  }
  hydra.param @norm [D] init = ones group = @no_decay
}
