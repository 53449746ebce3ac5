// What elementwise operations, constants and casts refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{attribute 'value' is an expression in a bound operation}}
    %y = hydra.constant value = v : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{attribute 'value' failed to satisfy constraint: number or expression}}
    %y = hydra.constant value = true : tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{attribute 'shape' is an expression in a bound operation}}
    %y = hydra.constant value = 1.0 shape = [D] : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{shape [4, -1] has a dimension that is not positive}}
    %y = hydra.constant value = 1.0 shape = [4, -1] : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{has elements of f64; expected f32, bf16, f16, i32 or i1}}
    %y = hydra.constant value = 1.0 dtype = f64 : tensor<f64>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{counts along axis 2 of a tensor with 2 dimensions}}
    %y = hydra.iota shape = [4, 5] axis = 2 : tensor<4x5xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{attribute 'axis' is an expression in a bound operation}}
    %y = hydra.iota shape = [4, 5] axis = a : tensor<4x5xi32>
    hydra.return
  }
}

// -----

// Functions are of real numbers.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xi32>) {
    // expected-error@+1 {{hydra.exp: operand has elements of i32; expected a floating-point type}}
    %y = hydra.exp %x : tensor<4xi32>
    hydra.return
  }
}

// -----

// Once bound, operands have one type.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>, %z: tensor<1xf32>) {
    // expected-error@+1 {{hydra.add: first operand is tensor<4xf32> but second operand is tensor<1xf32>}}
    %y = hydra.add %x, %z : tensor<4xf32>, tensor<1xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>, %z: tensor<4xbf16>) {
    // expected-error@+1 {{hydra.max: first operand is tensor<4xf32> but second operand is tensor<4xbf16>}}
    %y = hydra.max %x, %z : tensor<4xf32>, tensor<4xbf16>
    hydra.return
  }
}

// -----

// Truth values are no numbers.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    %c = hydra.compare %x, %x is = "lt" : tensor<4xf32>, tensor<4xf32>
    // expected-error@+1 {{hydra.mul: operands hold truth values (i1); expected numbers}}
    %y = hydra.mul %c, %c : tensor<4xi1>, tensor<4xi1>
    hydra.return
  }
}

// -----

// Division is of real numbers.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xi32>) {
    // expected-error@+1 {{hydra.div: first operand has elements of i32; expected a floating-point type}}
    %y = hydra.div %x, %x : tensor<4xi32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.compare: unknown predicate 'less'; expected eq, ne, lt, le, gt or ge}}
    %y = hydra.compare %x, %x is = "less" : tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>, %z: tensor<4xi32>) {
    // expected-error@+1 {{hydra.compare: first operand is tensor<4xf32> but second operand is tensor<4xi32>}}
    %y = hydra.compare %x, %z is = "eq" : tensor<4xf32>, tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.select: condition does not hold truth values (i1)}}
    %y = hydra.select %x, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>, %z: tensor<5xf32>) {
    %c = hydra.compare %z, %z is = "lt" : tensor<5xf32>, tensor<5xf32>
    // expected-error@+1 {{hydra.select: condition is [5]; expected [4]}}
    %y = hydra.select %c, %x, %x : tensor<5xi1>, tensor<4xf32>, tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>, %z: tensor<4xbf16>) {
    %c = hydra.compare %x, %x is = "lt" : tensor<4xf32>, tensor<4xf32>
    // expected-error@+1 {{hydra.select: first operand is tensor<4xf32> but second operand is tensor<4xbf16>}}
    %y = hydra.select %c, %x, %z : tensor<4xi1>, tensor<4xf32>, tensor<4xbf16>
    hydra.return
  }
}

// -----

// Truth values come from comparisons.
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{hydra.cast: cannot cast to this element type; expected f32, bf16, f16 or i32}}
    %y = hydra.cast %x to = i1 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{'hydra.constant' op has the value 0.5, which is no number of 'i32'}}
    %y = hydra.constant value = 0.5 shape = [4] dtype = i32 : tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{'hydra.constant' op has the value 2.14748e+09, which is no number of 'i32'}}
    %y = hydra.constant value = 2147483648 shape = [4] dtype = i32 : tensor<4xi32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{'hydra.constant' op has the value 2, which is no number of 'i1'}}
    %y = hydra.constant value = 2 shape = [4] dtype = i1 : tensor<4xi1>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{'hydra.constant' op has the value 1e+39, which is no number of 'f32'}}
    %y = hydra.constant value = 1.0e39 shape = [4] dtype = f32 : tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{'hydra.constant' op has the value inf, which is no number of 'i32'}}
    %y = hydra.constant value = inf shape = [4] dtype = i32 : tensor<4xi32>
    hydra.return
  }
}

// -----

// No text writes what is no number.
hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{attribute 'value' failed to satisfy constraint: number or expression}}
    %y = "hydra.constant"() {value = 0x7FF8000000000000 : f64} : () -> tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{'hydra.iota' op counts to 3, which is no number of 'i1'}}
    %y = hydra.iota shape = [4] axis = 0 dtype = i1 : tensor<4xi1>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{'hydra.iota' op counts to 2147483648, which is no number of 'i32'}}
    %y = hydra.iota shape = [2147483649] axis = 0 : tensor<2147483649xi32>
    hydra.return
  }
}
