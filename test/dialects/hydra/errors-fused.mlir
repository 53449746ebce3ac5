// What a group of row-wise operations refuses: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

// A group needs both halves of its domain.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<4x8xf32>) {
    // expected-error@+1 {{needs the attribute 'inner'}}
    %y = hydra.fused rows = [4] (%a = %x) : tensor<4x8xf32> {
      %b = hydra.neg %a : tensor<4x8xf32>
      hydra.yield %b : tensor<4x8xf32>
    }
    hydra.return
  }
}

// -----

// Inputs have types, because groups exist only once bound.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<4x8xf32>) {
    // expected-error@+1 {{inputs have no types; a group exists only once bound}}
    %y = hydra.fused rows = [4] inner = [8] (%a = %x) {
      hydra.yield %a
    }
    hydra.return
  }
}

// -----

// An inner tile has at most three dimensions.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<2x2x2x2xf32>) {
    // expected-error@+1 {{has 4 inner dimensions; expected at most 3}}
    %y = hydra.fused rows = [] inner = [2, 2, 2, 2] (%a = %x) : tensor<2x2x2x2xf32> {
      %b = hydra.neg %a : tensor<2x2x2x2xf32>
      hydra.yield %b : tensor<2x2x2x2xf32>
    }
    hydra.return
  }
}

// -----

// The shape of an input says how it lies in the domain.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<2x4xf32>) {
    // expected-error@+1 {{input 0 is [2, 4]; expected [8, 4] (tile), [8] (row value), [4] (column value) or [] (scalar)}}
    %y = hydra.fused rows = [8] inner = [4] (%a = %x) : tensor<2x4xf32> {
      %b = hydra.neg %a : tensor<2x4xf32>
      hydra.yield %b : tensor<2x4xf32>
    }
    hydra.return
  }
}

// -----

// So does that of a result.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<8x4xf32>) {
    // expected-error@+1 {{result 0 is [32]; expected [8, 4] (tile)}}
    %y = hydra.fused rows = [8] inner = [4] (%a = %x) : tensor<8x4xf32> {
      %b = hydra.neg %a : tensor<8x4xf32>
      %c = hydra.reshape %b shape = [32] : tensor<8x4xf32>
      hydra.yield %c : tensor<32xf32>
    }
    hydra.return
  }
}

// -----

// A row value is no column value, though there are as many rows as columns.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<4x4xf32>) {
    // expected-error@+1 {{result 0 of shape [4] is a row value; expected a column value}}
    %y = hydra.fused rows = [4] inner = [4] (%a = %x) : tensor<4x4xf32> {
      %b = hydra.sum %a axes = [1] : tensor<4x4xf32>
      hydra.yield %b : tensor<4xf32>
    }
    hydra.return
  }
}

// -----

// A group computes: no result is an input.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<8x4xf32>) {
    // expected-error@+1 {{result 0 is one of its inputs}}
    %y = hydra.fused rows = [8] inner = [4] (%a = %x) : tensor<8x4xf32> {
      hydra.yield %a : tensor<8x4xf32>
    }
    hydra.return
  }
}

// -----

// A matrix product is not row-wise.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) {
    %y = hydra.fused rows = [8] inner = [4] (%a = %x, %b = %w) : tensor<8x4xf32>, tensor<4x4xf32> {
      // expected-error@+1 {{cannot be in a group; expected row-wise operations, reshapes and broadcasts}}
      %c = hydra.linear %a, %b : tensor<8x4xf32>, tensor<4x4xf32>
      hydra.yield %c : tensor<8x4xf32>
    }
    hydra.return
  }
}

// -----

// A norm goes over all columns of the domain.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<2x4x4xf32>) {
    %y = hydra.fused rows = [2] inner = [4, 4] (%a = %x) : tensor<2x4x4xf32> {
      // expected-error@+1 {{works on [2, 4, 4], which is not the domain of its group: rows [2] and inner [4, 4]}}
      %b = hydra.softmax %a : tensor<2x4x4xf32>
      hydra.yield %b : tensor<2x4x4xf32>
    }
    hydra.return
  }
}

// -----

// A sum over rows is complete only when the group is.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<8x4xf32>) {
    %y = hydra.fused rows = [8] inner = [4] (%a = %x) : tensor<8x4xf32> {
      %b = hydra.sum %a axes = [0] : tensor<8x4xf32>
      // expected-error@+1 {{uses a sum over rows of its own group}}
      %c = hydra.neg %b : tensor<4xf32>
      hydra.yield %c : tensor<4xf32>
    }
    hydra.return
  }
}

// -----

// A rotation reads other columns than its own, so of memory.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<1x3x2x4xf32>) {
    %y = hydra.fused rows = [1, 3] inner = [2, 4] (%a = %x) : tensor<1x3x2x4xf32> {
      %b = hydra.neg %a : tensor<1x3x2x4xf32>
      // expected-error@+1 {{needs operand 0 from outside the group}}
      %c = hydra.rope %b base = 1.0e4 : tensor<1x3x2x4xf32>
      hydra.yield %c : tensor<1x3x2x4xf32>
    }
    hydra.return
  }
}

// -----

// A number for each row meets one for each column only as tiles.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<4x4xf32>, %w: tensor<4xf32>) {
    %y = hydra.fused rows = [4] inner = [4] (%a = %x, %c = %w) : tensor<4x4xf32>, tensor<4xf32> {
      %s = hydra.sum %a axes = [1] : tensor<4x4xf32>
      // expected-error@+1 {{mixes row and column values of its group}}
      %m = hydra.mul %s, %c : tensor<4xf32>, tensor<4xf32>
      %k = hydra.reshape %m shape = [4, 1] : tensor<4xf32>
      hydra.yield %k : tensor<4x1xf32>
    }
    hydra.return
  }
}

// -----

// A broadcast repeats over whole rows or columns.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<4x4xf32>) {
    %y = hydra.fused rows = [4] inner = [4] (%a = %x) : tensor<4x4xf32> {
      %s = hydra.sum %a axes = [1] : tensor<4x4xf32>
      // expected-error@+1 {{does not repeat a row value over all rows or all columns of its group}}
      %t = hydra.broadcast %s shape = [4, 4] : tensor<4xf32>
      hydra.yield %t : tensor<4x4xf32>
    }
    hydra.return
  }
}

// -----

// A reshape keeps rows apart.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e(%x: tensor<6x4xf32>) {
    %y = hydra.fused rows = [6] inner = [4] (%a = %x) : tensor<6x4xf32> {
      // expected-error@+1 {{mixes rows and columns of its group, which has rows [6] and inner [4]}}
      %b = hydra.reshape %a shape = [4, 6] : tensor<6x4xf32>
      %c = hydra.neg %b : tensor<4x6xf32>
      %d = hydra.reshape %c shape = [6, 4] : tensor<4x6xf32>
      hydra.yield %d : tensor<6x4xf32>
    }
    hydra.return
  }
}

// -----

// Index tensors lie in the domain as inputs do.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e() {
    %y = hydra.fused rows = [6] inner = [4] {
      // expected-error@+1 {{is [24]; expected [6, 4] (tile)}}
      %i = hydra.iota shape = [24] axis = 0 : tensor<24xi32>
      %d = hydra.reshape %i shape = [6, 4] : tensor<24xi32>
      hydra.yield %d : tensor<6x4xi32>
    }
    hydra.return
  }
}

// -----

// Dimensions are positive.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @e() {
    // expected-error@+1 {{has rows [0] and inner [4]; dimensions must be positive}}
    %y = hydra.fused rows = [0] inner = [4] {
      %c = hydra.constant value = 1.0 : tensor<f32>
      hydra.yield %c : tensor<f32>
    }
    hydra.return
  }
}
