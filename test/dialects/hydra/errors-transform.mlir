// What Fourier transforms refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x6xi32>) {
    // expected-error@+1 {{hydra.rfft: operand has elements of i32; expected a floating-point type}}
    %y = hydra.rfft %x : tensor<4x6xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x6xbf16>) {
    // expected-error@+1 {{hydra.rfft: operand has elements of bf16; expected f32}}
    %y = hydra.rfft %x : tensor<4x6xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<f32>) {
    // expected-error@+1 {{hydra.rfft: operand is []; expected at least 1 dimension}}
    %y = hydra.rfft %x : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x7xf32>) {
    // expected-error@+1 {{hydra.rfft: rows have 7 numbers; expected an even number}}
    %y = hydra.rfft %x : tensor<4x7xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%y: tensor<2xf32>) {
    // expected-error@+1 {{hydra.irfft: operand is [2]; expected at least 2 dimensions}}
    %x = hydra.irfft %y : tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%y: tensor<4x5x3xf32>) {
    // expected-error@+1 {{hydra.irfft: operand is [4, 5, 3]; expected [..., n / 2 + 1, 2], of rows of n numbers}}
    %x = hydra.irfft %y : tensor<4x5x3xf32>
    hydra.return
  }
}

// -----

// A row of two numbers has a spectrum of two.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%y: tensor<4x1x2xf32>) {
    // expected-error@+1 {{hydra.irfft: operand is [4, 1, 2]; expected [..., n / 2 + 1, 2], of rows of n numbers}}
    %x = hydra.irfft %y : tensor<4x1x2xf32>
    hydra.return
  }
}
