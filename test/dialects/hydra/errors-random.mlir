// What random words and dropout refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x3xf32>) {
    // expected-error@+1 {{hydra.dropout: drops a part of 1; expected at least 0 and less than 1}}
    %y = hydra.dropout %x p = 1.0 : tensor<2x3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x3xf32>) {
    // expected-error@+1 {{hydra.dropout: drops a part of -0.5; expected at least 0 and less than 1}}
    %y = hydra.dropout %x p = -0.5 : tensor<2x3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x3xi32>) {
    // expected-error@+1 {{hydra.dropout: operand}}
    %y = hydra.dropout %x p = 0.5 : tensor<2x3xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x3xf32>, %k: tensor<2x3xi32>) {
    // expected-error@+1 {{hydra.dropout: second operand does not hold truth values (i1)}}
    %y = hydra.dropout %x, %k p = 0.5 : tensor<2x3xf32>, tensor<2x3xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x3xf32>, %a: tensor<2x4xf32>) {
    %k = hydra.compare %a, %a is = "lt" : tensor<2x4xf32>, tensor<2x4xf32>
    // expected-error@+1 {{hydra.dropout: second operand is [2, 4]; expected [2, 3]}}
    %y = hydra.dropout %x, %k p = 0.5 : tensor<2x3xf32>, tensor<2x4xi1>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%k: tensor<2xi32>, %i: tensor<2xf32>) {
    // expected-error@+1 {{hydra.random: low word of the key}}
    %y = hydra.random %i, %k, %k, %k stream = 0 : tensor<2xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%k: tensor<2xi32>, %i: tensor<3xi32>) {
    // expected-error@+1 {{hydra.random: }}
    %y = hydra.random %k, %k, %i, %k stream = 0 : tensor<2xi32>, tensor<2xi32>, tensor<3xi32>, tensor<2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%k: tensor<2xi32>) {
    // expected-error@+1 {{hydra.random: has the stream -1; expected 0 to 4294967295}}
    %y = hydra.random %k, %k, %k, %k stream = -1 : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
    hydra.return
  }
}
