// What the operations of routing refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%u: tensor<4xi32>) {
    // expected-error@+1 {{hydra.top_k: operand has elements of i32; expected a floating-point type}}
    %y = hydra.top_k %u k = 1 : tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%u: tensor<f32>) {
    // expected-error@+1 {{hydra.top_k: operand is a scalar; expected [..., S]}}
    %y = hydra.top_k %u k = 1 : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%u: tensor<2x4xf32>) {
    // expected-error@+1 {{hydra.top_k: cannot choose 5 of 4 elements}}
    %y = hydra.top_k %u k = 5 : tensor<2x4xf32>
    hydra.return
  }
}

// -----

// Every element of a row is compared with every other one.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%u: tensor<67108864xf32>) {
    // expected-error@+1 {{hydra.top_k: the comparison of all pairs, [1, 67108864, 67108864] has more than 2^45 elements}}
    %y = hydra.top_k %u k = 5 : tensor<67108864xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%m: tensor<4xf32>) {
    // expected-error@+1 {{hydra.compact: mask holds no truth values (i1)}}
    %a, %b, %c = hydra.compact %m : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2147483648xf32>) {
    %m = hydra.compare %x, %x is = "lt" : tensor<2147483648xf32>, tensor<2147483648xf32>
    // expected-error@+1 {{hydra.compact: mask has 2147483648 rows; expected numbers of i32}}
    %a, %b, %c = hydra.compact %m : tensor<2147483648xi1>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xf32>, %i: tensor<4xi32>, %j: tensor<3xi32>) {
    // expected-error@+1 {{hydra.take_rows: place is [3]; expected [4]}}
    %y = hydra.take_rows %x, %i, %j : tensor<4x2xf32>, tensor<4xi32>, tensor<3xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xf32>, %i: tensor<4x2x1xi32>, %j: tensor<4xi32>) {
    // expected-error@+1 {{hydra.take_rows: index is [4, 2, 1]; expected a number for each row, or several}}
    %y = hydra.take_rows %x, %i, %j : tensor<4x2xf32>, tensor<4x2x1xi32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x2xf32>, %i: tensor<8xi32>, %j: tensor<8x2xi32>) {
    // expected-error@+1 {{hydra.take_rows: place is [8, 2]; expected [4, 2]}}
    %y = hydra.take_rows %x, %i, %j : tensor<4x2xf32>, tensor<8xi32>, tensor<8x2xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%m: tensor<4xi1>) {
    // expected-error@+1 {{hydra.route: mask is [4]; expected 2 dimensions}}
    %a, %b, %c, %d = hydra.route %m k = 1 : tensor<4xi1>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%m: tensor<4x3xf32>) {
    // expected-error@+1 {{hydra.route: mask holds no truth values (i1)}}
    %a, %b, %c, %d = hydra.route %m k = 1 : tensor<4x3xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%m: tensor<4x3xi1>) {
    // expected-error@+1 {{hydra.route: rows are in 4 of 3 groups}}
    %a, %b, %c, %d = hydra.route %m k = 4 : tensor<4x3xi1>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%m: tensor<1073741824x4xi1>) {
    // expected-error@+1 {{hydra.route: sorts 2147483648 rows into 4 groups; expected numbers of i32}}
    %a, %b, %c, %d = hydra.route %m k = 2 : tensor<1073741824x4xi1>
    hydra.return
  }
}
