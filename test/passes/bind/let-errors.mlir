// RUN: hydra-opt %s --split-input-file --hydra-bind --verify-diagnostics
//
// What turns out wrong in arithmetic, definitions and bundles once they are bound: at the word that is wrong, not at
// the `hydra.let` or call that it stands in.

hydra.model @m version 1 {
  hydra.entry @e(%x: [4, 3] f32, %z: [5, 3] f32) {
    // expected-error @+2 {{'hydra.add' op operands have the shapes [4, 3] and [5, 3], which do not broadcast}}
    %y = hydra.let (%x - mean(%x, 1))
        + %z * 0.5
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    %y = hydra.let @f(%x)
    hydra.return y = %y
  }
  hydra.def @f(%x) =
      // expected-error @+1 {{hydra.sum: axis 2 of a tensor with 1 dimensions}}
      sum(%x, 2)
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(S = 3)
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.constant' op 'S / 2' is not exact: 3 / 2 leaves a remainder of 1}}
    %y = hydra.let %x * (S / 2)
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] i32) {
    // expected-error @+1 {{'hydra.constant' op has the value 0.5, which is no number of 'i32'}}
    %y = hydra.let %x < 0.5
    %z = hydra.cast %x to = f32
    hydra.return z = %z
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.call' op gives 'n' a value that is not a non-negative integer}}
    %y = hydra.let @f(%x, n = 0.5)
    hydra.return y = %y
  }
  hydra.def @f(%x) dims(n) = slice(%x, axis = 0, start = 0, size = n)
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.call' op gives 'on' a value that is not true or false}}
    %y = hydra.call @f(%x, on = 1)
    hydra.return y = %y
  }
  hydra.def @f(%x) flags(on) = when(on, %x, 0)
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    %b = hydra.bundle one = %x, two = %x
    // expected-error @+1 {{'hydra.field' op takes the field 'three' of a bundle of one, two}}
    %y = hydra.let %x + %b.three
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.field' op takes the field 'one' of what is no bundle}}
    %y = hydra.let %x.one
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    %b = hydra.bundle one = %x, two = %x
    // expected-error @+1 {{'hydra.add' op operand 1 is a bundle of one, two; expected a value}}
    %y = hydra.let %x + %b
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    %b = hydra.bundle one = %x
    // expected-error @+1 {{'hydra.return' op operand 0 is a bundle of one; expected a value}}
    hydra.return y = %b
  }
}

// -----

hydra.model @m version 1 {
  hydra.stack @layers[2] {
    hydra.param @w [4] init = ones
  }
  hydra.entry @e(%x: [4] f32) {
    %b = hydra.bundle one = %x, two = %x
    %end = hydra.for @layers carry(%c = %b) {
      %next = hydra.let bundle(two = %c.two * @w, one = %c.one)
      // expected-error @+1 {{'hydra.yield' op yields a bundle of two, one; expected a bundle of one, two}}
      hydra.yield %next
    }
    %y = hydra.let %end.one
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.stack @layers[2] {
    hydra.param @w [4] init = ones
  }
  hydra.entry @e(%x: [4] f32) {
    %end = hydra.for @layers carry(%c = %x) {
      %p = hydra.when layer == 0 {
        %b = hydra.let bundle(one = %c * @w)
        hydra.yield %b
      } else {
        // expected-error @+1 {{'hydra.yield' op yields no bundle; expected a bundle of one}}
        hydra.yield %c
      }
      %next = hydra.let %p.one
      hydra.yield %next
    }
    hydra.return y = %end
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4, 2] f32, %s: [1, 2] f32) {
    %b = hydra.bundle one = %s
    // expected-error @+1 {{'hydra.scan' op yields no bundle; expected a bundle of one}}
    %y, %end = hydra.scan axis = 0 chunk = 1 over(%r = %x) carry(%c = %b) {
      %next = hydra.let %r + %c.one
      hydra.yield %next, %next
    }
    hydra.return y = %y
  }
}
