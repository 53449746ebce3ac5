// What expressions refuse, when read and when evaluated.
//
// RUN: hydra-opt %s --split-input-file --hydra-bind --verify-diagnostics

// A symbol must be declared …
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{symbol 'E' is not declared}}
  hydra.derive a = E + 1
}

// -----

// … before it is used.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{symbol 'b' is not declared}}
  hydra.derive a = b + 1
  hydra.derive b = 2
}

// -----

// `layer` means something in layers only.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{symbol 'layer' is not declared}}
  hydra.derive a = layer
}

// -----

// Division of integers leaves no remainder: the message names both.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'D / H' is not exact: 768 / 7 leaves a remainder of 5}}
  hydra.derive hd = D / H
}

// -----

// The message shows the part that failed.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'D / (H - 2)' is not exact: 768 / 5 leaves a remainder of 3}}
  hydra.derive a = 1 + 2 * (D / (H - 2))
}

// -----

// Nor is there a division by zero …
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'D / (H - 7)' is not exact: 768 / 0}}
  hydra.derive a = D / (H - 7)
}

// -----

// … of real numbers.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'x / 0' is not a finite number}}
  hydra.derive a = x / 0
}

// -----

// Integers do not wrap around in sums …
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{integer overflow in '9223372036854775807 + H'}}
  hydra.derive a = 9223372036854775807 + H
}

// -----

// … differences …
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{integer overflow in '-9223372036854775807 - H'}}
  hydra.derive a = -9223372036854775807 - H
}

// -----

// … and products.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{integer overflow in '9223372036854775807 * H'}}
  hydra.derive a = 9223372036854775807 * H
}

// -----

// The smallest integer cannot be written, so it is never a result.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{integer overflow in '-9223372036854775807 - 1'}}
  hydra.derive a = -9223372036854775807 - 1
}

// -----

// A real number beyond all integers cannot be rounded to one.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{integer overflow in 'ceil(1e+300 * x)'}}
  hydra.derive a = ceil(1.0e300 * x)
}

// -----

// Real functions stay in their domain.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'log(0)' is not a finite number}}
  hydra.derive a = log(0)
}

// -----

// Real numbers stay finite.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'exp(1000)' is not a finite number}}
  hydra.derive a = exp(1000)
}

// -----

// Arithmetic is for numbers.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'+' wants numbers in 'p + 1'}}
  hydra.derive a = p + 1
}

// -----

// A choice is no number.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'*' wants numbers in '2 * mode'}}
  hydra.derive a = 2 * mode
}

// -----

// Logic is for truth values.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'and' wants truth values in 'p and D'}}
  hydra.derive a = p and D
}

// -----

// So is the condition of a selection.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'select' wants truth values in 'select(D, 1, 2)'}}
  hydra.derive a = select(D, 1, 2)
}

// -----

// A choice is compared with its options only.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{choice 'mode' can only be compared with one of: fast, slow}}
  hydra.derive a = mode == medium
}

// -----

// A truth value is not compared with a number.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'==' wants numbers in 'p == 1'}}
  hydra.derive a = p == 1
}

// -----

// Functions are known.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{unknown function 'square'}}
  hydra.derive a = square(D)
}

// -----

// Functions have as many arguments as they take.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'pow' has 1 arguments; expected 2}}
  hydra.derive a = pow(D)
}

// -----

// A least number of arguments.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{'min' has 1 arguments; expected at least 2}}
  hydra.derive a = min(D)
}

// -----

// Something must stand where a value is expected.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{expected a number, a symbol or a function}}
  hydra.derive a = D * )
}

// -----

// Parentheses close.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{expected ')'}}
  hydra.derive a = (D + 1
}

// -----

// Real numbers are written with a decimal point.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{a real number needs a decimal point, as in 1.0e5}}
  hydra.derive a = 1e5
}

// -----

// They are finite.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{number is too large}}
  hydra.derive a = 1.0e999
}

// -----

// Integers have 64 bits.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{integer value too large}}
  hydra.derive a = 9223372036854775808
}

// -----

// An expression has only so many operators …
hydra.model @m version 1 {
  // expected-error@+1 {{expression has 129 operators; expected at most 128}}
  hydra.derive a = 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1
}

// -----

// … and nests only so deep.
hydra.model @m version 1 {
  // expected-error@+1 {{expression nests more than 512 deep}}
  hydra.derive a = ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
}

// -----

// Signs nest too.
hydra.model @m version 1 {
  // expected-error@+1 {{expression nests more than 512 deep}}
  hydra.derive a = ----------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------1
}

// -----

// A lone number needs no brackets.
hydra.model @m version 1 {
  // expected-error@+1 {{expected an expression over symbols}}
  "hydra.derive"() {symbol = "a", value = #hydra.expr<1>} : () -> ()
}

// -----

// In brackets comparisons are functions, which take two arguments.
hydra.model @m version 1 {
  // expected-error@+1 {{'lt' has 1 arguments; expected 2}}
  "hydra.derive"() {symbol = "a", value = #hydra.expr<lt(D)>} : () -> ()
}

// -----

// Outside they are not.
hydra.model @m version 1 {
  hydra.symbols dims(D = 768, H = 7) reals(x = 2.5) flags(p = true) choices(mode = fast of (fast, slow))
  // expected-error@+1 {{unknown function 'lt'}}
  hydra.derive a = lt(D, 5)
}
