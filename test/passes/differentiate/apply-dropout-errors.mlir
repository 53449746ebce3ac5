// RUN: hydra-opt %s --split-input-file --verify-diagnostics --hydra-apply-dropout="programs=loss"

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{'hydra.entry' op has an argument 'micro_batch', which dropout adds}}
  hydra.entry @loss(%x: tensor<2x3xf32>, %micro_batch: tensor<i32>) {
    %y = hydra.dropout %x p = 0.5 : tensor<2x3xf32>
    hydra.return y = %y : tensor<2x3xf32>
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @loss(%x: tensor<65536x32768x2xf32>) {
    // expected-error@+1 {{drops from [65536, 32768, 2]; expected at most 2147483647 rows}}
    %y = hydra.dropout %x p = 0.5 : tensor<65536x32768x2xf32>
    hydra.return y = %y : tensor<65536x32768x2xf32>
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @loss(%q: tensor<65536x2x32768x1xf32>) {
    // expected-error@+1 {{drops from [65536, 32768, 2, 2]; expected at most 2147483647 rows}}
    %o = hydra.attention %q, %q, %q scale = 1.0 dropout = 0.5 : tensor<65536x2x32768x1xf32>, tensor<65536x2x32768x1xf32>, tensor<65536x2x32768x1xf32>
    hydra.return o = %o : tensor<65536x2x32768x1xf32>
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @loss(%q: tensor<1x2x1x8xf32>) {
    // expected-error@+1 {{drops, and is differentiated already; expected hydra-apply-dropout in front of hydra-differentiate}}
    %o, %lse = hydra.attention %q, %q, %q scale = 1.0 dropkey = 0.5 saving : tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>, tensor<1x2x1x8xf32>
    hydra.return o = %o : tensor<1x2x1x8xf32>
  }
}
