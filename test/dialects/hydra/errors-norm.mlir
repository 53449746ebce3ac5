// What norms, softmax and the rotary embedding refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xi32>, %w: tensor<4xf32>) {
    // expected-error@+1 {{hydra.rms_norm: input has elements of i32; expected a floating-point type}}
    %y = hydra.rms_norm %x, %w eps = 1.0 : tensor<2x4xi32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xi32>) {
    // expected-error@+1 {{hydra.rms_norm: weight has elements of i32; expected a floating-point type}}
    %y = hydra.rms_norm %x, %w eps = 1.0 : tensor<2x4xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<f32>, %w: tensor<1xf32>) {
    // expected-error@+1 {{hydra.rms_norm: input is a scalar; expected [..., D]}}
    %y = hydra.rms_norm %x, %w eps = 1.0 : tensor<f32>, tensor<1xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<2xf32>) {
    // expected-error@+1 {{hydra.rms_norm: weight is [2]; expected [4]}}
    %y = hydra.rms_norm %x, %w eps = 1.0 : tensor<2x4xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>) {
    // expected-error@+1 {{hydra.rms_norm_grad: gradient is tensor<4xf32> but input is tensor<2x4xf32>}}
    %a, %b = hydra.rms_norm_grad %w, %x, %w, %r : tensor<4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>) {
    // expected-error@+1 {{hydra.rms_norm_grad: weight is [2]; expected [4]}}
    %a, %b = hydra.rms_norm_grad %x, %x, %r, %r : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
    // expected-error@+1 {{hydra.rms_norm_grad: row statistic is [4]; expected [2]}}
    %a, %b = hydra.rms_norm_grad %x, %x, %w, %w : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %b: tensor<2xf32>) {
    // expected-error@+1 {{hydra.layer_norm: bias is tensor<2xf32> but weight is tensor<4xf32>}}
    %y = hydra.layer_norm %x, %w, %b eps = 1.0 : tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
    // expected-error@+1 {{hydra.layer_norm: weight is [2, 4]; expected [4]}}
    %y = hydra.layer_norm %w, %x, %x eps = 1.0 : tensor<4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>) {
    // expected-error@+1 {{hydra.layer_norm_grad: gradient is tensor<4xf32> but input is tensor<2x4xf32>}}
    %a, %b, %c = hydra.layer_norm_grad %w, %x, %w, %r, %r : tensor<4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>) {
    // expected-error@+1 {{hydra.layer_norm_grad: mean is [4]; expected [2]}}
    %a, %b, %c = hydra.layer_norm_grad %x, %x, %w, %w, %r : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>) {
    // expected-error@+1 {{hydra.layer_norm_grad: row statistic is [4]; expected [2]}}
    %a, %b, %c = hydra.layer_norm_grad %x, %x, %w, %r, %w : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<f32>) {
    // expected-error@+1 {{hydra.softmax: input is a scalar; expected [..., D]}}
    %y = hydra.softmax %x : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xi32>) {
    // expected-error@+1 {{hydra.softmax: input has elements of i32; expected a floating-point type}}
    %y = hydra.softmax %x : tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<f32>) {
    // expected-error@+1 {{hydra.softmax_grad: input is a scalar; expected [..., D]}}
    %y = hydra.softmax_grad %x, %x : tensor<f32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
    // expected-error@+1 {{hydra.softmax_grad: gradient is tensor<4xf32> but softmax is tensor<2x4xf32>}}
    %y = hydra.softmax_grad %w, %x : tensor<4xf32>, tensor<2x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<1x2x3x4xi32>) {
    // expected-error@+1 {{hydra.rope: input has elements of i32; expected a floating-point type}}
    %y = hydra.rope %x base = 1.0e4 : tensor<1x2x3x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x3x4xf32>) {
    // expected-error@+1 {{hydra.rope: input is [2, 3, 4]; expected 4 dimensions}}
    %y = hydra.rope %x base = 1.0e4 : tensor<2x3x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<1x2x3x5xf32>) {
    // expected-error@+1 {{hydra.rope: head width 5 is odd; expected pairs of channels}}
    %y = hydra.rope %x base = 1.0e4 : tensor<1x2x3x5xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<1x2x3x4xf32>) {
    // expected-error@+1 {{hydra.rope: base is 0; expected a positive number}}
    %y = hydra.rope %x base = 0.0 : tensor<1x2x3x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<1x2x3x4xf32>) {
    // expected-error@+1 {{hydra.rope: period must be positive}}
    %y = hydra.rope %x base = 1.0e4 period = 0 : tensor<1x2x3x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xbf16>) {
    // expected-error@+1 {{hydra.rms_norm: eps is -1; expected a finite number from 0}}
    %y = hydra.rms_norm %x, %w eps = -1.0 : tensor<2x4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xbf16>) {
    // expected-error@+1 {{hydra.rms_norm: eps is inf; expected a finite number from 0}}
    %y = hydra.rms_norm %x, %w eps = inf : tensor<2x4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xbf16>) {
    // expected-error@+1 {{hydra.rms_norm: eps is 1e+39; expected a finite number from 0}}
    %y = hydra.rms_norm %x, %w eps = 1.0e39 : tensor<2x4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xbf16>) {
    // expected-error@+1 {{hydra.layer_norm: eps is -1; expected a finite number from 0}}
    %y = hydra.layer_norm %x, %w, %w eps = -1.0 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xbf16>) {
    // expected-error@+1 {{hydra.rms_norm_grad: row statistic has elements of bf16; expected f32}}
    %a, %b = hydra.rms_norm_grad %x, %x, %w, %r : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xbf16>) {
    // expected-error@+1 {{hydra.layer_norm_grad: mean has elements of bf16; expected f32}}
    %a, %b, %c = hydra.layer_norm_grad %x, %x, %w, %r, %r : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xbf16>, tensor<2xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<1x2x3x4xf32>) {
    // expected-error@+1 {{hydra.rope: base is inf; expected a positive number}}
    %y = hydra.rope %x base = inf : tensor<1x2x3x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<1x8x3x4xf32>) {
    // expected-error@+1 {{hydra.rope: turns by up to 7e+10 radians; expected less than 2^30, below which angles are exact}}
    %y = hydra.rope %x base = 1.0e-20 : tensor<1x8x3x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<1x2147483648x1x2xf32>) {
    // expected-error@+1 {{hydra.rope: turns by up to 2.14748e+09 radians; expected less than 2^30, below which angles are exact}}
    %y = hydra.rope %x base = 1.0e4 : tensor<1x2147483648x1x2xf32>
    hydra.return
  }
}
