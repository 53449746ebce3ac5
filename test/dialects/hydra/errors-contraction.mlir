// What matmuls and the embedding refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xi32>, %w: tensor<6x4xf32>) {
    // expected-error@+1 {{hydra.linear: input has elements of i32; expected a floating-point type}}
    %y = hydra.linear %x, %w : tensor<4xi32>, tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>, %w: tensor<4xf32>) {
    // expected-error@+1 {{hydra.linear: weight is [4]; expected 2 dimensions}}
    %y = hydra.linear %x, %w : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<f32>, %w: tensor<6x4xf32>) {
    // expected-error@+1 {{hydra.linear: input is a scalar; expected [..., K]}}
    %y = hydra.linear %x, %w : tensor<f32>, tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x512xf32>, %w: tensor<768x3072xf32>) {
    // expected-error@+1 {{hydra.linear: weight is [768, 3072] but the input has 512 columns; expected [N, 512]}}
    %y = hydra.linear %x, %w : tensor<2x512xf32>, tensor<768x3072xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<6x4xbf16>) {
    // expected-error@+1 {{hydra.linear: input and weight have different element types}}
    %y = hydra.linear %x, %w : tensor<2x4xf32>, tensor<6x4xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xi32>) {
    // expected-error@+1 {{hydra.linear: bias has elements of i32; expected a floating-point type}}
    %y = hydra.linear %x, %w, %b : tensor<2x4xf32>, tensor<6x4xf32>, tensor<6xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>, %b: tensor<4xf32>) {
    // expected-error@+1 {{hydra.linear: bias is [4]; expected [6]}}
    %y = hydra.linear %x, %w, %b : tensor<2x4xf32>, tensor<6x4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%a: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.matmul: first operand has elements of i32; expected a floating-point type}}
    %y = hydra.matmul %a, %a : tensor<2x4xi32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%a: tensor<4xf32>) {
    // expected-error@+1 {{hydra.matmul: operands are [4] and [4]; expected two matrices or equal batches of them}}
    %y = hydra.matmul %a, %a : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%a: tensor<2x3x4xf32>, %b: tensor<4x3xf32>) {
    // expected-error@+1 {{hydra.matmul: operands are [2, 3, 4] and [4, 3]; expected two matrices or equal batches of them}}
    %y = hydra.matmul %a, %b : tensor<2x3x4xf32>, tensor<4x3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%a: tensor<3x4xf32>, %b: tensor<4x3xf32>) {
    // expected-error@+1 {{hydra.matmul: sums over 4 elements of [3, 4] but 3 of [4, 3]}}
    %y = hydra.matmul %a, %b transpose_b : tensor<3x4xf32>, tensor<4x3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%a: tensor<3x4xf32>, %b: tensor<4x3xbf16>) {
    // expected-error@+1 {{hydra.matmul: operands have different element types}}
    %y = hydra.matmul %a, %b : tensor<3x4xf32>, tensor<4x3xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xf32>, %w: tensor<6x4xf32>) {
    // expected-error@+1 {{hydra.embedding: token ids has elements of f32; expected i32}}
    %y = hydra.embedding %t, %w : tensor<2xf32>, tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %w: tensor<6x4xi32>) {
    // expected-error@+1 {{hydra.embedding: table has elements of i32; expected f32, bf16, f16 or i8}}
    %y = hydra.embedding %t, %w : tensor<2xi32>, tensor<6x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %w: tensor<4xf32>) {
    // expected-error@+1 {{hydra.embedding: table is [4]; expected 2 dimensions}}
    %y = hydra.embedding %t, %w : tensor<2xi32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %w: tensor<6x4xf32>) {
    // expected-error@+1 {{hydra.embedding: padding is -1; expected an id in [0, 6)}}
    %y = hydra.embedding %t, %w padding = -1 : tensor<2xi32>, tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %w: tensor<6x4xf32>) {
    // expected-error@+1 {{hydra.embedding: padding is 6; expected an id in [0, 6)}}
    %y = hydra.embedding %t, %w padding = 6 : tensor<2xi32>, tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xf32>, %g: tensor<2x4xf32>) {
    // expected-error@+1 {{hydra.embedding_grad: token ids has elements of f32; expected i32}}
    %y = hydra.embedding_grad %t, %g rows = 6 : tensor<2xf32>, tensor<2x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %g: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.embedding_grad: gradient has elements of i32; expected a floating-point type}}
    %y = hydra.embedding_grad %t, %g rows = 6 : tensor<2xi32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %g: tensor<3x4xf32>) {
    // expected-error@+1 {{hydra.embedding_grad: gradient is [3, 4]; expected [2, 4]}}
    %y = hydra.embedding_grad %t, %g rows = 6 : tensor<2xi32>, tensor<3x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %g: tensor<f32>) {
    // expected-error@+1 {{hydra.embedding_grad: gradient is []; expected [2, 1]}}
    %y = hydra.embedding_grad %t, %g rows = 6 : tensor<2xi32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %g: tensor<2x4xf32>) {
    // expected-error@+1 {{hydra.embedding_grad: table has 0 rows; expected at least 1}}
    %y = hydra.embedding_grad %t, %g rows = 0 : tensor<2xi32>, tensor<2x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %d: tensor<2x4xbf16>) {
    // expected-error@+1 {{hydra.embedding_grad: gradient is not f32, in which it is summed}}
    %y = hydra.embedding_grad %t, %d rows = 5 : tensor<2xi32>, tensor<2x4xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>, %b: tensor<3xbf16>) {
    // expected-error@+1 {{hydra.linear: bias has another element type than the result}}
    %y = hydra.linear %x, %w, %b : tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %w: tensor<2147483649x1xf32>) {
    // expected-error@+1 {{'hydra.embedding' op has 2147483649 rows or classes; ids of i32 name 2147483648 at most}}
    %y = hydra.embedding %t, %w : tensor<2xi32>, tensor<2147483649x1xf32>
    hydra.return
  }
}
