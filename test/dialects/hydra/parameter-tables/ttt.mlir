// TTT-Linear Llama, parameters only: the mixer's fast weights W0 with their inner norm and gate.
// models.md sections 4.2 and 4.8.
//
// Every preset has as many parameters as models.md prints.
//
// DEFINE: %{count} = --hydra-unroll-layers | awk -f %S/Inputs/count-parameters.awk -v
//
// RUN: hydra-opt %s --hydra-bind="preset=debug_tiny" %{count} want=5313792
// RUN: hydra-opt %s --hydra-bind="preset=bringup_1p3b" %{count} want=1483458560
// RUN: hydra-opt %s --hydra-bind="preset=mid_35b" %{count} want=27553339392
// RUN: hydra-opt %s --hydra-bind="preset=ttt_llama_47b" %{count} want=47810748416
// RUN: hydra-opt %s --hydra-bind="preset=ttt_llama_70b" %{count} want=78984126464
//
// An output head of its own adds V D parameters, a gate for each head (H - 1) D a layer.
// RUN: hydra-opt %s --hydra-bind="preset=debug_tiny set=untied=true" %{count} want=6362368
// RUN: hydra-opt %s --hydra-bind="preset=debug_tiny set=per_head_lr=true" %{count} want=5316864
//
// RUN: hydra-opt %s --hydra-bind="preset=debug_tiny" --hydra-unroll-layers | FileCheck %s
//
// CHECK:       hydra.param @layers.3.W0 [4, 64, 64] init = normal(2.000000e-02)
// CHECK:       hydra.param @layers.3.theta_lr [1, 256] init = uniform(6.250000e-02)
// CHECK:       hydra.param @layers.3.down [256, 1024] init = uniform(3.125000e-02)
// CHECK:       hydra.param @norm [256] init = ones
// CHECK-NOT:   @lm_head

hydra.model @ttt version 1 {
  hydra.symbols dims(V, D, L, H, F, b0 = 16)
                reals(eta_base = 0.01, rope, eps = 1.0e-5)
                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)
                flags(per_head_lr = false, untied = false)
  hydra.derive d = D / H // width of a head
  hydra.derive gates = select(per_head_lr, H, 1)

  hydra.preset @debug_tiny    {V = 4096,   D = 256,  L = 4,  H = 4,  F = 1024,  rope = 1.0e4}
  hydra.preset @bringup_1p3b  {V = 128256, D = 2048, L = 24, H = 16, F = 5504,  rope = 1.0e4}
  hydra.preset @mid_35b       {V = 128256, D = 6144, L = 48, H = 48, F = 22016, rope = 5.0e5}
  hydra.preset @ttt_llama_47b {V = 128256, D = 8192, L = 48, H = 64, F = 28672, rope = 5.0e5}
  hydra.preset @ttt_llama_70b {V = 128256, D = 8192, L = 80, H = 64, F = 28672, rope = 5.0e5}

  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)

  hydra.param @tok_emb [V, D] init = normal(0.02)
  hydra.stack @layers[L] {
    hydra.param @norm1    [D]        init = ones
    hydra.param @w_q      [D, D]     init = uniform(1 / sqrt(D))
    hydra.param @w_k      [D, D]     init = uniform(1 / sqrt(D))
    hydra.param @w_v      [D, D]     init = uniform(1 / sqrt(D))
    hydra.param @w_o      [D, D]     init = uniform(1 / sqrt(D))
    hydra.param @W0       [H, d, d]  init = normal(0.02)
    hydra.param @ln_w     [H, d]     init = ones
    hydra.param @ln_b     [H, d]     init = zeros
    hydra.param @theta_lr [gates, D] init = uniform(1 / sqrt(D))
    hydra.param @norm2    [D]        init = ones
    hydra.param @gate     [F, D]     init = uniform(1 / sqrt(D))
    hydra.param @up       [F, D]     init = uniform(1 / sqrt(D))
    hydra.param @down     [D, F]     init = uniform(1 / sqrt(F))
  }
  hydra.param @norm    [D]    init = ones
  hydra.param @lm_head [V, D] init = uniform(1 / sqrt(D)) when untied
}
