// What the operations of the optimizer refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.adamw: parameter has elements of i32; expected a floating-point type}}
    %a, %b, %c = hydra.adamw %i, %p, %p, %p, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.adamw: first moment is [5]; expected [4]}}
    %a, %b, %c = hydra.adamw %p, %q, %p, %p, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.adamw: second moment is [5]; expected [4]}}
    %a, %b, %c = hydra.adamw %p, %p, %q, %p, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.adamw: gradient is [5]; expected [4]}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %q, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.adamw: learning rate is [4]; expected []}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %p, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.adamw: step is [4]; expected []}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %p beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.adamw: step has elements of f32; expected i32}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %lr beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.adamw: scale is [4]; expected []}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %t, %p beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+2 {{hydra.global_norm: has no operands; expected at least 1}}
    // expected-error@+1 {{failed to infer returned types}}
    %n = "hydra.global_norm"() : () -> tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>, %t: tensor<i32>, %i: tensor<4xi32>) {
    // expected-error@+1 {{hydra.global_norm: operand has elements of i32; expected a floating-point type}}
    %n = hydra.global_norm %p, %t : tensor<4xf32>, tensor<i32>
    hydra.return
  }
}
