// What the operations that count refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xi32>) {
    // expected-error@+1 {{hydra.count_exponents: operand has elements of i32; expected a floating-point type}}
    %n = hydra.count_exponents %x count = 8 first = -4 : tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%s: tensor<f32>) {
    // expected-error@+1 {{hydra.count_exponents: counts no tensor; expected at least 1}}
    %n = hydra.count_exponents %s count = 8 first = -4 scaled : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%s: tensor<1xf32>, %x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.count_exponents: factor is [1]; expected []}}
    %n = hydra.count_exponents %s, %x count = 8 first = -4 scaled : tensor<1xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%s: tensor<bf16>, %x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.count_exponents: factor has elements of bf16; expected f32}}
    %n = hydra.count_exponents %s, %x count = 8 first = -4 scaled : tensor<bf16>, tensor<4xf32>
    hydra.return
  }
}

// -----

// Counts are numbers of i32.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<1073741824xf32>) {
    // expected-error@+1 {{hydra.count_exponents: counts 2^31 elements or more; expected numbers of i32}}
    %n = hydra.count_exponents %x, %x count = 8 first = -4 : tensor<1073741824xf32>, tensor<1073741824xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.count_exponents: has 0 counters; expected from 1 to 254}}
    %n = hydra.count_exponents %x count = 0 first = -4 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.count_exponents: has 255 counters; expected from 1 to 254}}
    %n = hydra.count_exponents %x count = 255 first = -126 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.count_exponents: counts from exponent -127 on; expected from -126 to 124 with 4 counters}}
    %n = hydra.count_exponents %x count = 4 first = -127 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.count_exponents: counts from exponent 125 on; expected from -126 to 124 with 4 counters}}
    %n = hydra.count_exponents %x count = 4 first = 125 : tensor<4xf32>
    hydra.return
  }
}
