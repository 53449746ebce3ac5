// What every operation on values refuses: malformed text, operands that cannot be, unbound and bound
// values mixed. One case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

// Attributes are known …
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{unknown attribute 'eps' of hydra.neg; it has: none}}
    %y = hydra.neg %x eps = 1.0 : tensor<4xf32>
    hydra.return
  }
}

// -----

// … by name.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{unknown attribute 'epsilon' of hydra.rms_norm; it has: eps, saving}}
    %y = hydra.rms_norm %x, %x epsilon = 1.0 : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{attribute 'eps' is given twice}}
    %y = hydra.rms_norm %x, %x eps = 1.0 eps = 1.0 : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

// An attribute that must be there.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{'hydra.rms_norm' op requires attribute 'eps'}}
    %y = hydra.rms_norm %x, %x : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

// A flag has no value.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{attribute 'keep' failed to satisfy constraint: unit attribute}}
    %y = hydra.sum %x axes = [0] keep = 1 : tensor<4xf32>
    hydra.return
  }
}

// -----

// Lists are lists.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{attribute 'axes' failed to satisfy constraint: list of integers or expressions}}
    %y = hydra.sum %x axes = 0 : tensor<4xf32>
    hydra.return
  }
}

// -----

// Numbers are integers where they must be.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{attribute 'axis' failed to satisfy constraint: integer or expression}}
    %y = hydra.slice %x axis = 0.5 start = 0 size = 1 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{attribute 'axes' failed to satisfy constraint: list of integers or expressions}}
    %y = hydra.sum %x axes = [0.5] : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{attribute 'eps' failed to satisfy constraint: number or expression}}
    %y = hydra.rms_norm %x, %x eps = true : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.cast: cannot cast to this element type; expected f32, bf16, f16 or i32}}
    %y = hydra.cast %x to = f64 : tensor<4xf32>
    hydra.return
  }
}

// -----

// In generic form too.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{has no attribute 'eps'}}
    %y = "hydra.neg"(%x) {eps = 1.0} : (tensor<4xf32>) -> tensor<4xf32>
    hydra.return
  }
}

// -----

// Expressions are for models that are not bound.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{symbol 'epsilon' is not declared}}
    %y = hydra.rms_norm %x, %x eps = epsilon : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

// The number of a layer is one in layers alone.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{'hydra.rms_norm' op attribute 'eps' is an expression in a bound operation}}
    %y = hydra.rms_norm %x, %x eps = layer + 1 : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{'hydra.constant' op attribute 'value' is an expression in a bound operation}}
    %y = hydra.constant value = layer : tensor<f32>
    hydra.return
  }
}

// -----

// One type for each operand.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{1 types for 2 operands}}
    %y = hydra.add %x, %x : tensor<4xf32>
    hydra.return
  }
}

// -----

// Types are those of the values.
hydra.model @m version 1 bound {} {
  // expected-note@+1 {{prior use here}}
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{expects different type than prior uses: 'tensor<5xf32>' vs 'tensor<4xf32>'}}
    %y = hydra.neg %x : tensor<5xf32>
    hydra.return
  }
}

// -----

// Every operand is there.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.add: has 1 operands; expected at least 2}}
    %y = hydra.add %x : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{expected 2 operands, but found 3}}
    %y = hydra.add %x, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

// Values are tensors.
hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{hydra.neg: operand 0: f32 is not a static tensor}}
    %y = hydra.neg %z : f32
    %z = hydra.constant value = 1.0 : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.neg: operand 0: elements of f64; expected f32, bf16, f16, i32 or i1}}
    %y = hydra.neg %z : tensor<4xf64>
    %z = hydra.constant value = 1.0 : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.neg: operand 0: [0] has a dimension that is not positive}}
    %y = hydra.neg %z : tensor<0xf32>
    %z = hydra.constant value = 1.0 : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.neg: operand 0: [4294967296, 4294967296] has more than 2^45 elements}}
    %y = hydra.neg %z : tensor<4294967296x4294967296xf32>
    %z = hydra.constant value = 1.0 : tensor<f32>
    hydra.return
  }
}

// -----

// A result that no machine holds.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<67108864x1xf32>) {
    // expected-error@+1 {{hydra.linear: result 0: [67108864, 67108864] has more than 2^45 elements}}
    %y = hydra.linear %x, %x : tensor<67108864x1xf32>, tensor<67108864x1xf32>
    hydra.return
  }
}

// -----

// Without type a value is unbound, which its operation does not accept beside others.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{'hydra.add' op mixes bound and unbound values}}
    %y = hydra.add %x, %z : tensor<4xf32>, !hydra.any
    %z = hydra.constant value = 1.0
    hydra.return
  }
}

// -----

// In generic form the type of the result must be the one inferred.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+2 {{inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<5xf32>'}}
    // expected-error@+1 {{failed to infer returned types}}
    %y = "hydra.neg"(%x) : (tensor<4xf32>) -> tensor<5xf32>
    hydra.return
  }
}

// -----

// The same for operations without operands.
hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{has type 'tensor<5xf32>' but its attributes say 'tensor<4xf32>'}}
    %y = hydra.constant value = 1.0 shape = [4] : tensor<5xf32>
    hydra.return
  }
}

// -----

// No operation of the dialect.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{custom op 'hydra.negate' is unknown}}
    %y = hydra.negate %x : tensor<4xf32>
    hydra.return
  }
}

// -----

// Regions nest only so deep.
hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{regions nest more than 64 deep}}
    hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { hydra.when true { }}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}
    hydra.return
  }
}
