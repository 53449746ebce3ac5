// RUN: hydra-opt %s --split-input-file --verify-diagnostics
//
// What arithmetic, definitions and bundles refuse as they are read.

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{unknown function 'foo'}}
    %y = hydra.let %x + foo(%x)
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{unknown attribute 'axis' of hydra.sum; it has: axes, keep}}
    %y = hydra.let %x + sum(%x, axis = 0)
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{unknown attribute 'axis' of hydra.softmax; it has: none}}
    %y = hydra.let softmax(%x, axis = 0)
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'pow' is a function of symbols, not of values}}
    %y = hydra.let pow(%x, 2)
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'and' joins conditions over symbols; this one has a value}}
    %y = hydra.let %x > 0 and %x < 1
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'%x-1' reads as one name; write spaces around '-'}}
    %y = hydra.let %x-1
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{use of undeclared SSA value name}}
    %y = hydra.let %x * %z
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  // expected-error @+1 {{'%z' is no argument of the definition}}
  hydra.def @f(%x) = %x * %z
}

// -----

hydra.model @m version 1 {
  // expected-error @+1 {{'%x' is an argument twice}}
  hydra.def @f(%x, %x) = %x * 2
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{expected a number or a value}}
    %y = hydra.let %x * true
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] i1) {
    // expected-error @+1 {{'compact' has 3 results; arithmetic has room for one}}
    %y = hydra.let compact(%x)
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.exp' op requires a single operand}}
    %y = hydra.let exp(%x, %x)
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.slice' op requires attribute 'axis'}}
    %y = hydra.let slice(%x, start = 0, size = 1)
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{attribute 'axes' is given twice}}
    %y = hydra.let sum(%x, 0, axes = [0])
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'D' is given twice}}
    %y = hydra.let @f(%x, D = 2, D = 3)
    hydra.return y = %y
  }
  hydra.def @f(%x) dims(D) = %x * D
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.call' op gives no value to the parameter 'D' of @f}}
    %y = hydra.let @f(%x)
    hydra.return y = %y
  }
  hydra.def @f(%x) dims(D) = %x * D
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.call' op gives 'E' a value, but @f has only: D}}
    %y = hydra.call @f(%x, D = 1, E = 2)
    hydra.return y = %y
  }
  hydra.def @f(%x) dims(D) = %x * D
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.call' op has 1 operands and 1 results; @f takes 2 and gives 1}}
    %y = hydra.let 2 * @f(%x)
    hydra.return y = %y
  }
  hydra.def @f(%x, %y) = %x * %y
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D = 4)
  hydra.entry @e(%x: [D] f32) {
    %y = hydra.let @f(%x, D = 1)
    hydra.return y = %y
  }
  // expected-error @+1 {{'hydra.def' op parameter 'D' is also a word of the model}}
  hydra.def @f(%x) dims(D) = %x * D
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    %y = hydra.let @f(%x, D = 1)
    hydra.return y = %y
  }
  // expected-error @+1 {{'hydra.def' op parameter 'D' is never used}}
  hydra.def @f(%x) dims(D) = %x
}

// -----

hydra.model @m version 1 {
  // expected-error @+1 {{'hydra.def' op parameter 'D' is declared twice}}
  hydra.def @f(%x) dims(D) reals(D = 1.0) = %x * D
}

// -----

hydra.model @m version 1 {
  // expected-error @+1 {{'hydra.def' op has the choice 'c' for a parameter; expected dims, reals and flags}}
  hydra.def @f(%x) choices(c = a of (a, b)) = when(c == a, %x, 0)
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.bundle' op has the field 'a' twice}}
    %b = hydra.bundle a = %x, a = %x
    %y = hydra.let %b.a
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error @+1 {{'hydra.field' op '0' is no name for a field}}
    %y = hydra.let %x.0
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    %y = "hydra.let"() ({
      // expected-error @+1 {{'hydra.detach' op has no place in arithmetic}}
      %z = "hydra.detach"(%x) {hydra.note} : (!hydra.any) -> !hydra.any
      "hydra.yield"(%z) : (!hydra.any) -> ()
    }) : () -> !hydra.any
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  // expected-error @+1 {{'hydra.entry' op argument 'x.y' needs a name without '.' and '-'}}
  hydra.entry @e(%x.y: [4] f32) {
    hydra.return y = %x.y
  }
}
