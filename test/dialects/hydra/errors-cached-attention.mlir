// What attention over kept tokens refuses: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xi32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: query has elements of i32; expected a floating-point type}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xi32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: query is [3, 4, 8]; expected 4 dimensions}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: key is [3, 2, 8]; expected 4 dimensions}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x4x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: key is [2, 4, 2, 8]; expected [2, 3, 2, 8]}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x4x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x1x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: value is [2, 3, 1, 6]; expected [2, 3, 2, 6]}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x1x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: kept keys is [2, 9, 8]; expected 4 dimensions}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x7xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: kept keys is [2, 2, 9, 7]; expected [2, 2, 9, 8]}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x7xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x8x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: kept values is [2, 2, 8, 6]; expected [2, 2, 9, 6]}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x8x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<3xf32>) {
    // expected-error@+1 {{hydra.cached_attention: position is}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xi32>) {
    // expected-error@+1 {{hydra.cached_attention: position}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xbf16>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: kept keys and values have different element types, or other than those of query, key and value, which are not f32}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xbf16>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: chunk and window must be positive}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 window = 0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: chunk and window must be positive}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 chunk = -1 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: scale}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 0.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x3x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: 3 query heads cannot share 2 key heads evenly}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x3x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x2x8xf32>, %values: tensor<2x2x2x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: keeps 2 tokens; expected at least the 3 of a call}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x2x8xf32>, tensor<2x2x2x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x5000xf32>, %k: tensor<2x3x2x5000xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x5000xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: heads are 5000 and values 6 wide; expected at most 4096}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 : tensor<2x3x4x5000xf32>, tensor<2x3x2x5000xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x5000xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x6xf32>, %keys: tensor<2x2x9x8xf32>, %values: tensor<2x2x9x6xf32>, %position: tensor<2xf32>) {
    // expected-error@+1 {{hydra.cached_attention: cap is -1; expected a positive number}}
    %o, %a, %b = hydra.cached_attention %q, %k, %v, %keys, %values, %position scale = 1.0 cap = -1.0 : tensor<2x3x4x8xf32>, tensor<2x3x2x8xf32>, tensor<2x3x2x6xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x6xf32>, tensor<2xf32>
    hydra.return
  }
}
