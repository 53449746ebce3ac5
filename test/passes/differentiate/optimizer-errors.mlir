// What the optimizer refuses of a model.
//
// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-differentiate --hydra-optimizer=accum=2 --verify-diagnostics

// Micro-batches divide by the labels of all of them, which nobody counts for the chunks of a loop.
hydra.model @m version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @w [11, 16] init = normal(1.0)
  hydra.entry @loss(%x: [2, 16, 16] f32, %labels: [2, 16] i32) {
    %zero = hydra.constant value = 0.0 shape = [] dtype = f32
    %loss = hydra.scan axis = 1 chunk = 2 over(%xc = %x, %lc = %labels) carry(%s = %zero) {
      %z = hydra.let linear(%xc, @w)
      // expected-error@+1 {{'hydra.cross_entropy' op counts the labels of a step's micro-batches in a loop; expected --accum=1}}
      %l = hydra.cross_entropy %z, %lc
      %n = hydra.let %s + %l
      hydra.yield %n
    }
    hydra.return loss = %loss
  }
}

// -----

// One step has one value for a parameter.
hydra.model @m version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @w [4] init = normal(1.0)
  hydra.entry @loss(%x: [4] f32) {
    %loss = hydra.let mean(%x * @w, axes = [0])
    %half = hydra.let @w * 0.5
    // expected-error@+1 {{'hydra.return' op updates @w, which the optimizer updates; expected hydra.state, or a parameter that --freeze names}}
    hydra.return loss = %loss updates(@w = %half)
  }
}
