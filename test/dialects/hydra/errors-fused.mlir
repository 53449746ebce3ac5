// What groups of row-wise operations refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    // expected-error@+1 {{dimensions must be positive}}
    %y = hydra.fused rows = [0] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
      %y = hydra.neg %a : tensor<2x4xf32>
      hydra.yield %y : tensor<2x4xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    // expected-error@+1 {{domain [1099511627776, 4096] has more than 2^45 elements}}
    %y = hydra.fused rows = [1099511627776] inner = [4096] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
      %y = hydra.neg %a : tensor<2x4xf32>
      hydra.yield %y : tensor<2x4xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    // expected-error@+1 {{has 4 inner dimensions; expected at most 3}}
    %y = hydra.fused rows = [2] inner = [1, 1, 1, 4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
      %y = hydra.neg %a : tensor<2x4xf32>
      hydra.yield %y : tensor<2x4xf32>
    }
    hydra.return
  }
}

// -----

// A group exists only once bound …
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    // expected-error@+1 {{attribute 'rows' is an expression in a bound operation}}
    %y = hydra.fused rows = [B] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
      %y = hydra.neg %a : tensor<2x4xf32>
      hydra.yield %y : tensor<2x4xf32>
    }
    hydra.return
  }
}

// -----

// … with its inputs.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{inputs have no types; a group exists only once bound}}
    hydra.fused rows = [2] inner = [4] (%a = %x) {
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{needs the attribute 'inner'}}
    hydra.fused rows = [2] (%a = %x) : tensor<4xf32> {
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{has block arguments of other types than its inputs}}
    %y = "hydra.fused"(%x) <{rows = [2], inner = [4]}> ({
    ^bb0(%a: tensor<2x4xf32>):
      %n = hydra.neg %a : tensor<2x4xf32>
      hydra.yield %n : tensor<2x4xf32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>) {
    %y = "hydra.fused"(%x) <{rows = [2], inner = [4]}> ({
    ^bb0(%a: tensor<2x4xf32>):
      %n = hydra.neg %a : tensor<2x4xf32>
    // expected-error@+1 {{yields other types than the results of its group}}
      hydra.yield %n : tensor<2x4xf32>
    }) : (tensor<2x4xf32>) -> tensor<4xf32>
    hydra.return
  }
}

// -----

// A group computes what it gives.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    // expected-error@+1 {{result 0 is one of its inputs}}
    %y = hydra.fused rows = [2] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
      hydra.yield %a : tensor<2x4xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%z: tensor<3x4xf32>) {
    // expected-error@+1 {{input 0 is [3, 4]; expected [2, 4] (tile), [2] (row value), [4] (column value) or [] (scalar)}}
    %y = hydra.fused rows = [2] inner = [4] (%a = %z) : tensor<3x4xf32> {
      %y = hydra.neg %a : tensor<3x4xf32>
      hydra.yield %y : tensor<3x4xf32>
    }
    hydra.return
  }
}

// -----

// Sums over rows are for operations outside.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    %y = hydra.fused rows = [2] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
      %r0 = hydra.constant value = 1.0 shape = [2] : tensor<2xf32>
      %dx, %dw = hydra.rms_norm_grad %a, %a, %b, %r0 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>
    // expected-error@+1 {{uses a sum over rows of its own group}}
      %y = hydra.neg %dw : tensor<4xf32>
      hydra.yield %y : tensor<4xf32>
    }
    hydra.return
  }
}

// -----

// Rows and columns stay apart.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    %y = hydra.fused rows = [2] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
    // expected-error@+1 {{mixes rows and columns of its group, which has rows [2] and inner [4]}}
      %y = hydra.reshape %a shape = [8] : tensor<2x4xf32>
      %z = hydra.neg %y : tensor<8xf32>
      hydra.yield %z : tensor<8xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    %y = hydra.fused rows = [2] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
    // expected-error@+1 {{cannot be in a group; expected row-wise operations, reshapes and broadcasts}}
      %y = hydra.transpose %a order = [1, 0] : tensor<2x4xf32>
      hydra.yield %y : tensor<4x2xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    %y = hydra.fused rows = [2] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
    // expected-error@+1 {{does not repeat a tile over all rows or all columns of its group, which has rows [2] and inner [4]}}
      %y = hydra.broadcast %a shape = [3, 2, 4] : tensor<2x4xf32>
      hydra.yield %y : tensor<3x2x4xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    %y = hydra.fused rows = [2] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
    // expected-error@+1 {{is [3]; expected [2, 4] (tile), [2] (row value), [4] (column value) or [] (scalar)}}
      %y = hydra.iota shape = [3] axis = 0 dtype = f32 : tensor<3xf32>
      hydra.yield %y : tensor<3xf32>
    }
    hydra.return
  }
}

// -----

// Rows of a table are gathered from outside.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%t: tensor<2xi32>, %w: tensor<2x4xf32>) {
    %y = hydra.fused rows = [2] inner = [4] (%i = %t, %b = %w) : tensor<2xi32>, tensor<2x4xf32> {
      %n = hydra.neg %b : tensor<2x4xf32>
    // expected-error@+1 {{needs operand 1 from outside the group}}
      %y = hydra.embedding %i, %n : tensor<2xi32>, tensor<2x4xf32>
      hydra.yield %y : tensor<2x4xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    %y = hydra.fused rows = [2] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
      %c = hydra.constant value = 1.0 shape = [3, 4] : tensor<3x4xf32>
    // expected-error@+1 {{works on [3, 4], which is not the domain of its group: rows [2] and inner [4]}}
      %y = hydra.softmax %c : tensor<3x4xf32>
      hydra.yield %y : tensor<3x4xf32>
    }
    hydra.return
  }
}

// -----

// A square domain: a vector is a column value, and stays one in another shape.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%c: tensor<4xf32>) {
    // expected-error@+1 {{result 0 of shape [4, 1] is a column value; expected a row value}}
    %y = hydra.fused rows = [4] inner = [4] (%a = %c) : tensor<4xf32> {
      %p = hydra.reshape %a shape = [4, 1] : tensor<4xf32>
      %y = hydra.neg %p : tensor<4x1xf32>
      hydra.yield %y : tensor<4x1xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%r: tensor<4x1xf32>, %c: tensor<4xf32>) {
    %y = hydra.fused rows = [4] inner = [4] (%a = %r, %b = %c) : tensor<4x1xf32>, tensor<4xf32> {
      %p = hydra.reshape %b shape = [4, 1] : tensor<4xf32>
    // expected-error@+1 {{mixes row and column values of its group, which has rows [4] and inner [4]}}
      %y = hydra.add %p, %a : tensor<4x1xf32>, tensor<4x1xf32>
      hydra.yield %y : tensor<4x1xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %r: tensor<2xf32>, %t: tensor<2xi32>) {
    // expected-error@+1 {{result 0 is [3]; expected [2, 4] (tile), [2] (row value), [4] (column value) or [] (scalar)}}
    %y = hydra.fused rows = [2] inner = [4] (%a = %x, %b = %w) : tensor<2x4xf32>, tensor<4xf32> {
      %y = hydra.constant value = 1.0 shape = [3] : tensor<3xf32>
      hydra.yield %y : tensor<3xf32>
    }
    hydra.return
  }
}
