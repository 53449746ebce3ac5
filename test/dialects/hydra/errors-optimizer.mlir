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

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: beta1 is 1; expected a number from 0 to less than 1}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %t beta1 = 1.0 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: beta2 is -0.5; expected a number from 0 to less than 1}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %t beta1 = 0.9 beta2 = -0.5 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: eps is -1; expected a finite number from 0}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = -1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: wd is inf; expected a finite number from 0}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = inf lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: lr_scale is -1; expected a finite number from 0}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = -1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: first moment has elements of i32; expected a floating-point type}}
    %a, %b, %c = hydra.adamw %p, %i, %p, %p, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: second moment has elements of i32; expected a floating-point type}}
    %a, %b, %c = hydra.adamw %p, %p, %i, %p, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: gradient has elements of i32; expected a floating-point type}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %i, %lr, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: learning rate has elements of bf16; expected f32}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %low, %t beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<bf16>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>, %low: tensor<bf16>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw: scale has elements of bf16; expected f32}}
    %a, %b, %c = hydra.adamw %p, %p, %p, %p, %lr, %t, %low beta1 = 0.9 beta2 = 0.9 eps = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<bf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.sgd: momentum is [5]; expected [4]}}
    %a, %b = hydra.sgd %p, %q, %p, %lr momentum = 0.9 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.sgd: gradient is [5]; expected [4]}}
    %a = hydra.sgd %p, %q, %lr wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<5xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.sgd: has 2 operands; expected 3 or 4}}
    %a = hydra.sgd %p, %lr wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %i: tensor<4xi32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.sgd: parameter has elements of i32; expected a floating-point type}}
    %a = hydra.sgd %i, %p, %lr wd = 0.1 lr_scale = 1.0 : tensor<4xi32>, tensor<4xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %lr: tensor<4xf32>) {
    // expected-error@+1 {{hydra.sgd: learning rate is [4]; expected []}}
    %a = hydra.sgd %p, %p, %lr wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %lr: tensor<f32>, %low: tensor<bf16>) {
    // expected-error@+1 {{hydra.sgd: scale has elements of bf16; expected f32}}
    %a = hydra.sgd %p, %p, %lr, %low wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<bf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.sgd: wd is -1; expected a finite number from 0}}
    %a = hydra.sgd %p, %p, %lr wd = -1.0 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %ok: tensor<i32>) {
    // expected-error@+1 {{hydra.guard: guard does not hold truth values (i1)}}
    %a = hydra.guard %ok, %p, %p : tensor<i32>, tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %ok: tensor<4xi1>) {
    // expected-error@+1 {{hydra.guard: guard is [4]; expected []}}
    %a = hydra.guard %ok, %p, %p : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %q: tensor<5xf32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.lion: gradient is [5]; expected [4]}}
    %a, %b = hydra.lion %p, %p, %q, %lr beta1 = 0.9 beta2 = 0.99 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.lion: beta2 is 1; expected a number from 0 to less than 1}}
    %a, %b = hydra.lion %p, %p, %p, %lr beta1 = 0.9 beta2 = 1.0 wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4x4xf32>, %q: tensor<4xf32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.muon: direction is [4]; expected [4, 4]}}
    %a = hydra.muon %p, %q, %lr, %lr wd = 0.1 lr_scale = 1.0 : tensor<4x4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<4xf32>, %lr: tensor<f32>) {
    // expected-error@+1 {{hydra.adafactor: pace is [4]; expected []}}
    %a = hydra.adafactor %p, %p, %p, %lr wd = 0.1 lr_scale = 1.0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>
    hydra.return
  }
}
