// RUN: hydra-opt %s --split-input-file --verify-diagnostics --hydra-bind="set=D=6 loops-from=1000000"

// What combines rows does not know how many pairs it is given at a time.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [3, D] f32) {
    %y = hydra.prefix_scan axis = 0 over(%here = %x) combine(%before) {
      // expected-error@+1 {{symbol 'rows' is not declared}}
      %s = hydra.let %before + %here * rows
      hydra.yield %s
    }
    hydra.return y = %y
  }
}

// -----

// State of a stack is not what a program updates, and its value is known where its stack is.
hydra.model @m version 1 {
  hydra.stack @layers[2] {
    hydra.state @seen [4] f32 init = zeros
  }
  hydra.entry @e(%x: [4] f32) {
    %y = hydra.for @layers carry(%h = %x) {
      %s = hydra.use @seen
      %n = hydra.let %h + %s
      hydra.yield %n
    }
    // expected-error@+1 {{updates @seen, which is neither parameter nor state of the model; those of stacks keep their values}}
    hydra.return y = %y updates(@seen = %y)
  }
}

// -----

// Heads that do not divide the width: the error names both.
hydra.model @m version 1 {
  hydra.symbols dims(D, H = 4)
  // expected-error @+1 {{'D / H' is not exact: 6 / 4 leaves a remainder of 2}}
  hydra.derive hd = D / H
}

// -----

// A symbol without a value.
// expected-error @+1 {{symbol 'F' of @m has no value; choose a preset () or set F=VALUE}}
hydra.model @m version 1 {
  hydra.symbols dims(D, F)
}

// -----

// A setting for something that is no symbol.
// expected-error @+1 {{setting gives 'D', but @m has no such symbol; it has: F}}
hydra.model @m version 1 {
  hydra.symbols dims(F = 1)
}

// -----

// The same where nothing is a symbol.
// expected-error @+1 {{setting gives 'D', but @m has no such symbol; it has: none}}
hydra.model @m version 1 {
}

// -----

// Shapes that do not fit.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.param @w [5, D] init = ones
  hydra.entry @e(%x: [2, 7] f32) {
    %w = hydra.use @w
    // expected-error @+1 {{hydra.linear: weight is [5, 6] but the input has 7 columns; expected [N, 7]}}
    %y = hydra.linear %x, %w
    hydra.return y = %y
  }
}

// -----

// A carried value that changes type.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.stack @layers[2] {
    hydra.param @w [5, D] init = ones
  }
  hydra.entry @e(%x: [2, D] f32) {
    %y = hydra.for @layers carry(%h = %x) {
      %w = hydra.use @w
      %z = hydra.linear %h, %w
      // expected-error @+1 {{carried value 0 changes type}}
      hydra.yield %z
    }
    hydra.return y = %y
  }
}

// -----

// A scan whose sequences have different lengths.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [4, D] f32, %y: [5, D] f32) {
    // expected-error @+1 {{'hydra.scan' op scans sequences of 4 and 5 rows}}
    %z = hydra.scan axis = 0 chunk = 2 over(%a = %x, %b = %y) {
      hydra.yield %a
    }
    hydra.return z = %z
  }
}

// -----

// A scan along an axis that a sequence has not.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [4, D] f32) {
    // expected-error @+1 {{'hydra.scan' op has axis 2 but scans a tensor of [4, 6]}}
    %z = hydra.scan axis = 2 chunk = 2 over(%a = %x) {
      hydra.yield %a
    }
    hydra.return z = %z
  }
}

// -----

// A carried value that grows.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [4, D] f32) {
    %start = hydra.slice %x axis = 0 start = 0 size = 1
    // expected-error @+1 {{'hydra.scan' op carried value 0 changes type from 'tensor<1x6xf32>' to 'tensor<3x6xf32>'}}
    %end = hydra.scan axis = 0 chunk = 2 over(%a = %x) carry(%s = %start) {
      %next = hydra.concat %s, %a axis = 0
      hydra.yield %next
    }
    hydra.return end = %end
  }
}

// -----

// A chunk of nothing.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [4, D] f32) {
    // expected-error @+1 {{'hydra.scan' op has a chunk that is no positive number}}
    %z = hydra.scan axis = 0 chunk = D - 6 over(%a = %x) {
      hydra.yield %a
    }
    hydra.return z = %z
  }
}

// -----

// A combination that changes shape.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [4, D] f32) {
    // expected-error @+1 {{'hydra.prefix_scan' op combines values of type 'tensor<3x6xf32>' to 'tensor<3x1xf32>'}}
    %z = hydra.prefix_scan axis = 0 over(%b = %x) combine(%a) {
      %c = hydra.add %a, %b
      %d = hydra.sum %c axes = [1] keep
      hydra.yield %d
    }
    hydra.return z = %z
  }
}

// -----

// Sequences of other lengths.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [4, D] f32) {
    %y = hydra.slice %x axis = 0 start = 0 size = 3
    // expected-error @+1 {{'hydra.prefix_scan' op scans sequences of 4 and 3 rows}}
    %z, %w = hydra.prefix_scan axis = 0 over(%c = %x, %d = %y) combine(%a, %b) {
      hydra.yield %a, %b
    }
    hydra.return z = %z
  }
}

// -----

// Values without a place in the combination.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [4, D] f32) {
    // expected-error @+1 {{'hydra.prefix_scan' op scans 1 sequences but combines 3 values to 1 results; expected two values and one result for each}}
    %z = hydra.prefix_scan axis = 0 over(%c = %x) combine(%a, %b) {
      hydra.yield %a
    }
    hydra.return z = %z
  }
}

// -----

// Scans in scans multiply.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [10000 * D] f32) {
    %z = hydra.scan axis = 0 chunk = 1 over(%a = %x) {
      // expected-error @+1 {{'hydra.scan' op is one of those that write more than 1000000 operations}}
      %y = hydra.scan axis = 0 chunk = 1 over(%b = %x) {
        %c = hydra.add %a, %b
        hydra.yield %c
      }
      hydra.yield %y
    }
    hydra.return z = %z
  }
}

// -----

// A default that is no number once symbols have values.
hydra.model @m version 1 {
  hydra.symbols dims(D) choices(c = one of (one, two))
  // expected-error @+1 {{has an argument with a default that is not a finite number}}
  hydra.entry @e(%x: [D] f32, %s: [] f32 = c) {
    %y = hydra.mul %x, %s
    hydra.return y = %y
  }
}

// -----

// A name for what runs count or draw.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error @+1 {{has an argument 'micro_batch' of i32, a name for what runs count or draw; expected another}}
  hydra.entry @e(%x: [D] f32, %step: [] f32 = 1.0, %micro_batch: [] i32 = 1) {
    hydra.return y = %x, n = %micro_batch
  }
}

// -----

// Matmuls with gelu are for targets that have them; the pass knows which.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [2, D] f32, %w: [3, D] f32) {
    // expected-error @+1 {{'hydra.linear_gelu' op is for hydra-fuse-epilogues to make; expected hydra.linear and hydra.gelu}}
    %y = hydra.linear_gelu %x, %w
    hydra.return y = %y
  }
}

// -----

// Loops of a plan nest only so deep.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.entry @e(%x: [2] f32, %y: [D] f32) {
    %z = hydra.constant value = 0.0 shape = [1]
    %o0, %e0 = hydra.scan axis = 0 chunk = 1 over(%c0 = %x) carry(%s0 = %z) {
    %o1, %e1 = hydra.scan axis = 0 chunk = 1 over(%c1 = %x) carry(%s1 = %s0) {
    %o2, %e2 = hydra.scan axis = 0 chunk = 1 over(%c2 = %x) carry(%s2 = %s1) {
    %o3, %e3 = hydra.scan axis = 0 chunk = 1 over(%c3 = %x) carry(%s3 = %s2) {
    %o4, %e4 = hydra.scan axis = 0 chunk = 1 over(%c4 = %x) carry(%s4 = %s3) {
    %o5, %e5 = hydra.scan axis = 0 chunk = 1 over(%c5 = %x) carry(%s5 = %s4) {
    %o6, %e6 = hydra.scan axis = 0 chunk = 1 over(%c6 = %x) carry(%s6 = %s5) {
    // expected-error @+1 {{'hydra.scan' op lies in 7 scans; expected fewer}}
    %o7, %e7 = hydra.scan axis = 0 chunk = 1 over(%c7 = %x) carry(%s7 = %s6) {
    %t = hydra.add %c7, %s7
    hydra.yield %t, %t
    }
    hydra.yield %e7, %e7
    }
    hydra.yield %e6, %e6
    }
    hydra.yield %e5, %e5
    }
    hydra.yield %e4, %e4
    }
    hydra.yield %e3, %e3
    }
    hydra.yield %e2, %e2
    }
    hydra.yield %e1, %e1
    }
    hydra.return o = %o0, y = %y
  }
}
