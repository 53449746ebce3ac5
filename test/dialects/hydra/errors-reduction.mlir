// What reductions refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xi32>) {
    // expected-error@+1 {{hydra.sum: operand has elements of i32; expected a floating-point type}}
    %y = hydra.sum %x axes = [0] : tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.sum: reduces no axis}}
    %y = hydra.sum %x axes = [] : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.mean: axis 2 of a tensor with 2 dimensions}}
    %y = hydra.mean %x axes = [2] : tensor<4x5xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.mean: axis -3 of a tensor with 2 dimensions}}
    %y = hydra.mean %x axes = [-3] : tensor<4x5xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.reduce_max: reduces axis 1 twice}}
    %y = hydra.reduce_max %x axes = [1, -1] : tensor<4x5xf32>
    hydra.return
  }
}
