// What the operations that move elements refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.broadcast: cannot broadcast [4, 5] to [5, 4]}}
    %y = hydra.broadcast %x shape = [5, 4] : tensor<4x5xf32>
    hydra.return
  }
}

// -----

// Dimensions are not lost.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.broadcast: cannot broadcast [4, 5] to [5]}}
    %y = hydra.broadcast %x shape = [5] : tensor<4x5xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.broadcast: [0, 4] has a dimension that is not positive}}
    %y = hydra.broadcast %x shape = [0, 4] : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.broadcast: result 0: [1099511627776, 4096, 4] has more than 2^45 elements}}
    %y = hydra.broadcast %x shape = [1099511627776, 4096, 4] : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.reshape: cannot reshape [4, 5] (20 elements) to [3, 7] (21)}}
    %y = hydra.reshape %x shape = [3, 7] : tensor<4x5xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.reshape: [-4, -5] has a dimension that is not positive}}
    %y = hydra.reshape %x shape = [-4, -5] : tensor<4x5xf32>
    hydra.return
  }
}

// -----

// A product of dimensions that wraps around to the right number of elements.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.reshape: cannot reshape [4] (4 elements) to [4611686018427387905, 4] (9223372036854775807)}}
    %y = hydra.reshape %x shape = [4611686018427387905, 4] : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.transpose: order [0, 0] does not permute the 2 dimensions of [4, 5]}}
    %y = hydra.transpose %x order = [0, 0] : tensor<4x5xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>) {
    // expected-error@+1 {{hydra.transpose: order [1] does not permute the 2 dimensions of [4, 5]}}
    %y = hydra.transpose %x order = [1] : tensor<4x5xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.slice: axis 1 of a tensor with 1 dimensions}}
    %y = hydra.slice %x axis = 1 start = 0 size = 1 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.slice: axis -1 is negative}}
    %y = hydra.slice %x axis = -1 start = 0 size = 1 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.slice: 3 elements from 2 of axis 0 are not inside [4]}}
    %y = hydra.slice %x axis = 0 start = 2 size = 3 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.slice: 2 elements from -1 of axis 0 are not inside [4]}}
    %y = hydra.slice %x axis = 0 start = -1 size = 2 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.slice: 9223372036854775807 elements from 2 of axis 0 are not inside [4]}}
    %y = hydra.slice %x axis = 0 start = 2 size = 9223372036854775807 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+2 {{hydra.concat: has no operands; expected at least 1}}
    // expected-error@+1 {{failed to infer returned types}}
    %y = "hydra.concat"() {axis = 0} : () -> tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.concat: axis -1 is negative}}
    %y = hydra.concat %x, %x axis = -1 : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.concat: axis 1 of a tensor with 1 dimensions}}
    %y = hydra.concat %x, %x axis = 1 : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x5xf32>, %z: tensor<3x6xf32>) {
    // expected-error@+1 {{hydra.concat: operand 1 is [3, 6]; expected [3, 5]}}
    %y = hydra.concat %x, %z axis = 0 : tensor<4x5xf32>, tensor<3x6xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>, %z: tensor<4xbf16>) {
    // expected-error@+1 {{hydra.concat: operands have different element types}}
    %y = hydra.concat %x, %z axis = 0 : tensor<4xf32>, tensor<4xbf16>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<17592186044416xf32>) {
    // expected-error@+1 {{hydra.concat: result 0: [52776558133248] has more than 2^45 elements}}
    %y = hydra.concat %x, %x, %x axis = 0 : tensor<17592186044416xf32>, tensor<17592186044416xf32>, tensor<17592186044416xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.pad: pads by -1 and 0; expected no negative number}}
    %y = hydra.pad %x axis = 0 before = -1 after = 0 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.pad: axis -1 is negative}}
    %y = hydra.pad %x axis = -1 before = 1 after = 0 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.pad: axis 1 of a tensor with 1 dimensions}}
    %y = hydra.pad %x axis = 1 before = 1 after = 0 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.pad: pads by 9223372036854775807 and 9223372036854775807; expected at most 2^48}}
    %y = hydra.pad %x axis = 0 before = 9223372036854775807 after = 9223372036854775807 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.pad: result 0: [281474976710660] has more than 2^45 elements}}
    %y = hydra.pad %x axis = 0 before = 281474976710656 after = 0 : tensor<4xf32>
    hydra.return
  }
}
