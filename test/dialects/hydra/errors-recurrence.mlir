// What linear recurrences refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x6xf32>, %q: tensor<6x2xf32>) {
    // expected-error@+1 {{hydra.linear_recurrence: x is [4, 6]; expected [batch, tokens, channels]}}
    %y = hydra.linear_recurrence %x, %q, %q, %q, %q : tensor<4x6xf32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4x6xbf16>, %q: tensor<6x2xf32>) {
    // expected-error@+1 {{hydra.linear_recurrence: x has elements of bf16; expected f32}}
    %y = hydra.linear_recurrence %x, %q, %q, %q, %q : tensor<2x4x6xbf16>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4x6xf32>, %q: tensor<5x2xf32>) {
    // expected-error@+1 {{hydra.linear_recurrence: q_re is [5, 2]; expected [6, states of a channel]}}
    %y = hydra.linear_recurrence %x, %q, %q, %q, %q : tensor<2x4x6xf32>, tensor<5x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4x6xf32>, %q: tensor<6x257xf32>) {
    // expected-error@+1 {{hydra.linear_recurrence: a channel has 257 states; expected at most 256}}
    %y = hydra.linear_recurrence %x, %q, %q, %q, %q : tensor<2x4x6xf32>, tensor<6x257xf32>, tensor<6x257xf32>, tensor<6x257xf32>, tensor<6x257xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4x6xf32>, %q: tensor<6x2xf32>, %c: tensor<6x3xf32>) {
    // expected-error@+1 {{hydra.linear_recurrence: c_im}}
    %y = hydra.linear_recurrence %x, %q, %q, %q, %c : tensor<2x4x6xf32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4x6xf32>, %q: tensor<6x2xf32>, %begins: tensor<2x4xf32>) {
    // expected-error@+1 {{hydra.linear_recurrence: begins}}
    %y = hydra.linear_recurrence %x, %q, %q, %q, %q, %begins : tensor<2x4x6xf32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>, tensor<2x4xf32>
    hydra.return
  }
}
