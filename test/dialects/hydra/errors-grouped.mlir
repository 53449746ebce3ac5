// What matmuls of rows in groups refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>, %w: tensor<3x5x2xf32>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: first operand is [4]; expected 2 dimensions}}
    %y = hydra.grouped_linear %x, %w, %o : tensor<4xf32>, tensor<3x5x2xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xf32>, %w: tensor<5x2xf32>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: weight is [5, 2]; expected 3 dimensions}}
    %y = hydra.grouped_linear %x, %w, %o : tensor<4x2xf32>, tensor<5x2xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xi32>, %w: tensor<3x5x2xi32>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: first operand has elements of i32; expected a floating-point type}}
    %y = hydra.grouped_linear %x, %w, %o : tensor<4x2xi32>, tensor<3x5x2xi32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xf32>, %w: tensor<3x5x2xf32>, %o: tensor<4xf32>) {
    // expected-error@+1 {{hydra.grouped_linear: offsets has elements of f32; expected i32}}
    %y = hydra.grouped_linear %x, %w, %o : tensor<4x2xf32>, tensor<3x5x2xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xf32>, %w: tensor<3x5x2xf32>, %o: tensor<3xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: has 3 offsets of 3 groups; expected 4}}
    %y = hydra.grouped_linear %x, %w, %o : tensor<4x2xf32>, tensor<3x5x2xf32>, tensor<3xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xf32>, %w: tensor<3x5x2xbf16>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: operands have different element types}}
    %y = hydra.grouped_linear %x, %w, %o : tensor<4x2xf32>, tensor<3x5x2xbf16>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x3xf32>, %w: tensor<3x5x2xf32>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: weight is [3, 5, 2] but the input has 3 columns; expected [E, N, 3]}}
    %y = hydra.grouped_linear %x, %w, %o : tensor<4x3xf32>, tensor<3x5x2xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x3xf32>, %w: tensor<3x5x2xf32>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: weight is [3, 5, 2] but the input has 3 columns; expected [E, 3, N]}}
    %y = hydra.grouped_linear %x, %w, %o transposed : tensor<4x3xf32>, tensor<3x5x2xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xf32>, %w: tensor<3x5x2xf32>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: cannot yield this element type; expected f32, or that of the operands}}
    %y = hydra.grouped_linear %x, %w, %o dtype = bf16 : tensor<4x2xf32>, tensor<3x5x2xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xbf16>, %w: tensor<3x5x2xbf16>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_linear: cannot multiply in this format; expected f32 or tf32, of operands in f32}}
    %y = hydra.grouped_linear %x, %w, %o compute = tf32 : tensor<4x2xbf16>, tensor<3x5x2xbf16>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%a: tensor<4x2xf32>, %b: tensor<5x2xf32>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_outer: operands are [4, 2] and [5, 2]; expected as many rows}}
    %y = hydra.grouped_outer %a, %b, %o : tensor<4x2xf32>, tensor<5x2xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%a: tensor<4x2xf32>, %b: tensor<4xf32>, %o: tensor<4xi32>) {
    // expected-error@+1 {{hydra.grouped_outer: second operand is [4]; expected 2 dimensions}}
    %y = hydra.grouped_outer %a, %b, %o : tensor<4x2xf32>, tensor<4xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>, %o: tensor<1xi32>) {
    // expected-error@+1 {{hydra.grouped_outer: has one offset; expected where each group begins, and where the last ends}}
    %y = hydra.grouped_outer %a, %b, %o : tensor<4x2xf32>, tensor<4x2xf32>, tensor<1xi32>
    hydra.return
  }
}
