// Weights of i8: their text, and what is refused.
// RUN: hydra-opt %s --split-input-file --verify-diagnostics | hydra-opt --split-input-file | FileCheck %s

// CHECK: hydra.param @w [3, 16] i8 init = ones
// CHECK-NEXT: hydra.state @w.scale [3] init = zeros of @w as scale
// CHECK: hydra.scaled_linear %x, %w, %w.scale : tensor<4x16xbf16>, tensor<3x16xi8>, tensor<3xf32>
// CHECK: hydra.scaled_linear %x, %w, %w.scale, %b dtype = f32 : tensor<4x16xbf16>, tensor<3x16xi8>, tensor<3xf32>, tensor<3xf32>
// CHECK: hydra.concat %w, %w axis = 0 : tensor<3x16xi8>, tensor<3x16xi8>
// CHECK: hydra.embedding %ids, %w : tensor<4xi32>, tensor<3x16xi8>
// CHECK: hydra.cast %w to = bf16 : tensor<3x16xi8>
hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4x16xbf16>, %ids: tensor<4xi32>, %b: tensor<3xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    %s = hydra.use @w.scale : tensor<3xf32>
    %y = hydra.scaled_linear %x, %w, %s : tensor<4x16xbf16>, tensor<3x16xi8>, tensor<3xf32>
    %z = hydra.scaled_linear %x, %w, %s, %b dtype = f32 : tensor<4x16xbf16>, tensor<3x16xi8>, tensor<3xf32>, tensor<3xf32>
    %both = hydra.concat %w, %w axis = 0 : tensor<3x16xi8>, tensor<3x16xi8>
    %rows = hydra.embedding %ids, %w : tensor<4xi32>, tensor<3x16xi8>
    %wide = hydra.cast %w to = bf16 : tensor<3x16xi8>
    hydra.return y = %y, z = %z, wide = %wide : tensor<4x3xbf16>, tensor<4x3xf32>, tensor<3x16xbf16>
  }
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{has elements of 'i8'; expected f32, bf16, f16 or i32}}
  hydra.param @w [3, 16] i8 init = ones
  hydra.entry @e(%x: tensor<4xf32>) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] init = ones
  // expected-error@+1 {{is a scale of no matrix of i8}}
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4xf32>) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  // expected-error@+1 {{is a scale of @w of another shape or type; expected f32, one for each of its rows}}
  hydra.state @w.scale [16] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4xf32>) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4x16xbf16>, %b: tensor<3xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    %s = hydra.use @w.scale : tensor<3xf32>
    // expected-error@+1 {{hydra.scaled_linear: input has elements of another type; expected f32, bf16 or f16}}
    %y = hydra.scaled_linear %w, %w, %s : tensor<3x16xi8>, tensor<3x16xi8>, tensor<3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4x16xbf16>, %b: tensor<3xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    %s = hydra.use @w.scale : tensor<3xf32>
    // expected-error@+1 {{hydra.scaled_linear: weight has elements of another type; expected i8}}
    %y = hydra.scaled_linear %x, %x, %s : tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4x32xbf16>, %b: tensor<3xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    %s = hydra.use @w.scale : tensor<3xf32>
    // expected-error@+1 {{hydra.scaled_linear: weight is [3, 16] and the input [4, 32]; expected [N, K] and [..., K], K a multiple of 16}}
    %y = hydra.scaled_linear %x, %w, %s : tensor<4x32xbf16>, tensor<3x16xi8>, tensor<3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 24] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4x24xbf16>, %b: tensor<3xf32>) {
    %w = hydra.use @w : tensor<3x24xi8>
    %s = hydra.use @w.scale : tensor<3xf32>
    // expected-error@+1 {{hydra.scaled_linear: weight is [3, 24] and the input [4, 24]; expected [N, K] and [..., K], K a multiple of 16}}
    %y = hydra.scaled_linear %x, %w, %s : tensor<4x24xbf16>, tensor<3x24xi8>, tensor<3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<17x16xbf16>, %b: tensor<3xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    %s = hydra.use @w.scale : tensor<3xf32>
    // expected-error@+1 {{hydra.scaled_linear: input has 17 rows; expected at most 16}}
    %y = hydra.scaled_linear %x, %w, %s : tensor<17x16xbf16>, tensor<3x16xi8>, tensor<3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4x16xbf16>, %b: tensor<3xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    %s = hydra.use @w.scale : tensor<3xf32>
    // expected-error@+1 {{hydra.scaled_linear: scale is [4, 16]; expected [3]}}
    %y = hydra.scaled_linear %x, %w, %x : tensor<4x16xbf16>, tensor<3x16xi8>, tensor<4x16xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4x16xbf16>, %b: tensor<3xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    %s = hydra.use @w.scale : tensor<3xf32>
    // expected-error@+1 {{hydra.scaled_linear: bias has another element type than the result}}
    %y = hydra.scaled_linear %x, %w, %s, %b : tensor<4x16xbf16>, tensor<3x16xi8>, tensor<3xf32>, tensor<3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    // expected-error@+1 {{hydra.cast: cannot cast i8 to this element type; expected f32, bf16 or f16}}
    %y = hydra.cast %w to = i32 : tensor<3x16xi8>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [3, 16] i8 init = ones
  hydra.state @w.scale [3] init = zeros of @w as scale
  hydra.entry @e(%x: tensor<4xf32>) {
    %w = hydra.use @w : tensor<3x16xi8>
    // expected-error@+1 {{hydra.add: operand 0: elements of i8; expected f32, bf16, f16, i32 or i1}}
    %y = hydra.add %w, %w : tensor<3x16xi8>, tensor<3x16xi8>
    hydra.return
  }
}
