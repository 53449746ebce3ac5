// What losses refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<2x5xi32>, %l: tensor<2xi32>) {
    // expected-error@+1 {{hydra.cross_entropy: input has elements of i32; expected a floating-point type}}
    %y = hydra.cross_entropy %z, %l : tensor<2x5xi32>, tensor<2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<2x5xf32>, %l: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cross_entropy: labels has elements of f32; expected i32}}
    %y = hydra.cross_entropy %z, %l : tensor<2x5xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<f32>, %l: tensor<i32>) {
    // expected-error@+1 {{hydra.cross_entropy: input is a scalar; expected [..., V]}}
    %y = hydra.cross_entropy %z, %l : tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<2x5xf32>, %l: tensor<5xi32>) {
    // expected-error@+1 {{hydra.cross_entropy: labels is [5]; expected [2]}}
    %y = hydra.cross_entropy %z, %l : tensor<2x5xf32>, tensor<5xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<2x5xf32>, %l: tensor<2xi32>, %g: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cross_entropy_grad: gradient of the loss is [2]; expected []}}
    %y = hydra.cross_entropy_grad %g, %z, %l, %g : tensor<2xf32>, tensor<2x5xf32>, tensor<2xi32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<2x5xf32>, %l: tensor<2xi32>, %g: tensor<f32>) {
    // expected-error@+1 {{hydra.cross_entropy_grad: lse is []; expected [2]}}
    %y = hydra.cross_entropy_grad %g, %z, %l, %g : tensor<f32>, tensor<2x5xf32>, tensor<2xi32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<2x5xf32>, %l: tensor<2xi32>, %g: tensor<f32>) {
    // expected-error@+1 {{hydra.cross_entropy_grad: labels has elements of f32; expected i32}}
    %y = hydra.cross_entropy_grad %g, %z, %g, %g : tensor<f32>, tensor<2x5xf32>, tensor<f32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<5x4xf32>, %l: tensor<3xi32>) {
    // expected-error@+1 {{hydra.linear_cross_entropy: labels is [3]; expected [2]}}
    %y = hydra.linear_cross_entropy %x, %w, %l : tensor<2x4xf32>, tensor<5x4xf32>, tensor<3xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %l: tensor<2xi32>) {
    // expected-error@+1 {{hydra.linear_cross_entropy: weight is [4]; expected 2 dimensions}}
    %y = hydra.linear_cross_entropy %x, %w, %l : tensor<2x4xf32>, tensor<4xf32>, tensor<2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4x5xf32>, %l: tensor<2xi32>) {
    // expected-error@+1 {{hydra.linear_cross_entropy: weight is [4, 5] but the input has 4 columns; expected [V, 4]}}
    %y = hydra.linear_cross_entropy %x, %w, %l : tensor<2x4xf32>, tensor<4x5xf32>, tensor<2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<5x4xbf16>, %l: tensor<2xi32>) {
    // expected-error@+1 {{hydra.linear_cross_entropy: input and weight have different element types}}
    %y = hydra.linear_cross_entropy %x, %w, %l : tensor<2x4xf32>, tensor<5x4xbf16>, tensor<2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<2x4xf32>, %l: tensor<2xi32>, %s: tensor<2xf32>, %g: tensor<bf16>) {
    // expected-error@+1 {{hydra.cross_entropy_grad: gradient of the loss has elements of bf16; expected f32}}
    %y = hydra.cross_entropy_grad %g, %z, %l, %s : tensor<bf16>, tensor<2x4xf32>, tensor<2xi32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<2x4xf32>, %l: tensor<2xi32>, %s: tensor<2xbf16>, %g: tensor<f32>) {
    // expected-error@+1 {{hydra.cross_entropy_grad: lse has elements of bf16; expected f32}}
    %y = hydra.cross_entropy_grad %g, %z, %l, %s : tensor<f32>, tensor<2x4xf32>, tensor<2xi32>, tensor<2xbf16>
    hydra.return
  }
}

// -----

// Labels of i32 must be able to name every class.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x1xf32>, %w: tensor<2147483649x1xf32>, %l: tensor<2xi32>) {
    // expected-error@+1 {{'hydra.linear_cross_entropy' op has 2147483649 rows or classes; ids of i32 name 2147483648 at most}}
    %y = hydra.linear_cross_entropy %x, %w, %l : tensor<2x1xf32>, tensor<2147483649x1xf32>, tensor<2xi32>
    hydra.return
  }
}
