// What the choice of a token refuses: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<40xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x2xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: scores is [40]; expected 2 dimensions}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<40xf32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xbf16>, %tokens: tensor<2x3xi32>, %seen: tensor<2x2xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: scores has elements of bf16; expected f32}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xbf16>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2xi32>, %seen: tensor<2x2xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: tokens is [2]; expected 2 dimensions}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2xi32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2x3xf32>, %seen: tensor<2x2xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: tokens has elements of f32; expected i32}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2x3xf32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<3x3xi32>, %seen: tensor<2x2xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: tokens is [3, 3]; expected [2, 3]}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<3x3xi32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x2xf32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: seen has elements of f32; expected i32}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2x3xi32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x40xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: seen is [2, 40]; expected [2, 2]}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2x3xi32>, tensor<2x40xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x2xi32>, %position: tensor<2xi32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: position has elements of i32; expected f32}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2xi32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x2xi32>, %position: tensor<2x1xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: position is [2, 1]; expected [2]}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2x1xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x2xi32>, %position: tensor<2xf32>, %settings: tensor<2x6xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: settings is [2, 6]; expected [2, 5]}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x6xf32>, tensor<2x4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x2xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xf32>) {
    // expected-error@+1 {{hydra.sample: draw has elements of f32; expected i32}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x40xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x2xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x2xi32>) {
    // expected-error@+1 {{hydra.sample: draw is [2, 2]; expected [2, 4]}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x40xf32>, tensor<2x3xi32>, tensor<2x2xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%scores: tensor<2x16777217xf32>, %tokens: tensor<2x3xi32>, %seen: tensor<2x524289xi32>, %position: tensor<2xf32>, %settings: tensor<2x5xf32>, %draw: tensor<2x4xi32>) {
    // expected-error@+1 {{hydra.sample: draws from 16777217 ids; expected at most 16777216}}
    %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<2x16777217xf32>, tensor<2x3xi32>, tensor<2x524289xi32>, tensor<2xf32>, tensor<2x5xf32>, tensor<2x4xi32>
    hydra.return
  }
}
