// What attention refuses: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xi32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: query has elements of i32; expected a floating-point type}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<2x6x4x8xi32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: query is [6, 4, 8]; expected 4 dimensions}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<6x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: key is [6, 2, 8]; expected 4 dimensions}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<2x6x4x8xf32>, tensor<6x2x8xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: value is [6, 2, 8]; expected 4 dimensions}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<3x6x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: key is [3, 6, 2, 8]; expected [2, 6, 2, 8]}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<2x6x4x8xf32>, tensor<3x6x2x8xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x4xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: key is [2, 6, 2, 4]; expected [2, 6, 2, 8]}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<2x6x4x8xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x5x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: value is [2, 5, 2, 8]; expected [2, 6, 2, 8]}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x5x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x3x8xf32>, %v: tensor<2x6x3x8xf32>) {
    // expected-error@+1 {{hydra.attention: 4 query heads cannot share 3 key heads evenly}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<2x6x4x8xf32>, tensor<2x6x3x8xf32>, tensor<2x6x3x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xbf16>) {
    // expected-error@+1 {{hydra.attention: query, key and value have different element types}}
    %o = hydra.attention %q, %k, %v scale = 1.0 : tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: chunk and window need causal}}
    %o = hydra.attention %q, %k, %v scale = 1.0 chunk = 4 : tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: chunk and window need causal}}
    %o = hydra.attention %q, %k, %v scale = 1.0 window = 4 : tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: 6 queries but 5 keys; a causal mask expects as many}}
    %o = hydra.attention %q, %k, %v scale = 1.0 causal : tensor<2x6x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: chunk and window must be positive}}
    %o = hydra.attention %q, %k, %v scale = 1.0 causal chunk = 0 : tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xf32>) {
    // expected-error@+1 {{hydra.attention: chunk and window must be positive}}
    %o = hydra.attention %q, %k, %v scale = 1.0 causal window = -1 : tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>
    hydra.return
  }
}

// -----

// The derivative checks what the operation does …
hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %lse: tensor<2x4x6xf32>) {
    // expected-error@+1 {{hydra.attention_grad: value is [2, 4, 6]; expected 4 dimensions}}
    %a, %b, %c = hydra.attention_grad %q, %q, %k, %lse, %q, %lse scale = 1.0 : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x4x6xf32>, tensor<2x6x4x8xf32>, tensor<2x4x6xf32>
    hydra.return
  }
}

// -----

// … and its own operands.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %lse: tensor<2x4x6xf32>) {
    // expected-error@+1 {{hydra.attention_grad: gradient is tensor<2x6x2x8xf32> but output is tensor<2x6x4x8xf32>}}
    %a, %b, %c = hydra.attention_grad %k, %q, %k, %k, %q, %lse scale = 1.0 : tensor<2x6x2x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x4x8xf32>, tensor<2x4x6xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %lse: tensor<2x4x6xf32>) {
    // expected-error@+1 {{hydra.attention_grad: output is [2, 6, 2, 8]; expected [2, 6, 4, 8]}}
    %a, %b, %c = hydra.attention_grad %k, %q, %k, %k, %k, %lse scale = 1.0 : tensor<2x6x2x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>, tensor<2x4x6xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %lse: tensor<2x6x4xf32>) {
    // expected-error@+1 {{hydra.attention_grad: lse is [2, 6, 4]; expected [2, 4, 6]}}
    %a, %b, %c = hydra.attention_grad %q, %q, %k, %k, %q, %lse scale = 1.0 : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x2x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>) {
    // expected-error@+1 {{hydra.attention: scale is -1; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = -1.0 : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>) {
    // expected-error@+1 {{hydra.attention: scale is 0; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = 0.0 : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>) {
    // expected-error@+1 {{hydra.attention: scale is inf; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = inf : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>) {
    // expected-error@+1 {{hydra.attention: scale is -inf; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = -inf : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>) {
    // expected-error@+1 {{hydra.attention: scale is 1e+39; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = 1.0e39 : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %l: tensor<2x4x6xf32>) {
    // expected-error@+1 {{hydra.attention_grad: scale is -1; expected a positive number}}
    %a, %b, %c = hydra.attention_grad %q, %q, %q, %q, %q, %l scale = -1.0 : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x4x6xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x6x4x8xf32>, %l: tensor<2x4x6xbf16>) {
    // expected-error@+1 {{hydra.attention_grad: lse has elements of bf16; expected f32}}
    %a, %b, %c = hydra.attention_grad %q, %q, %q, %q, %q, %l scale = 1.0 : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x4x6xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<1x2x1x4097xf32>, %v: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{hydra.attention: heads are 4097 and values 8 wide; expected at most 4096}}
    %o = hydra.attention %q, %q, %v scale = 1.0 : tensor<1x2x1x4097xf32>, tensor<1x2x1x4097xf32>, tensor<1x2x1x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{hydra.attention: cap is 0; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = 1.0 cap = 0.0 : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{hydra.attention: cap is -50; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = 1.0 cap = -50.0 : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{hydra.attention: cap is inf; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = 1.0 cap = inf : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{hydra.attention: cap is 0; expected a positive number}}
    %o = hydra.attention %q, %q, %q scale = 1.0 cap = 1.0e-50 : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>
    hydra.return
  }
}

// -----

// By which f32 cannot divide.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{hydra.attention: scale / cap is}}
    %o = hydra.attention %q, %q, %q scale = 1.0e20 cap = 1.0e-30 : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{hydra.attention: drops a part of 1 of its weights; expected at least 0 and less than 1}}
    %o = hydra.attention %q, %q, %q scale = 1.0 dropout = 1.0 : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{hydra.attention: drops a part of -0.5 of its keys; expected at least 0 and less than 1}}
    %o = hydra.attention %q, %q, %q scale = 1.0 dropkey = -0.5 : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>
    hydra.return
  }
}
