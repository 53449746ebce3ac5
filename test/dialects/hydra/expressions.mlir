// Expressions over symbols: how they read, print and evaluate.
//
// RUN: hydra-opt %s --split-input-file | FileCheck %s
// RUN: hydra-opt %s --split-input-file --hydra-bind | FileCheck %s --check-prefix=BOUND
// RUN: hydra-opt %s --split-input-file -o %t
// RUN: hydra-opt %t --split-input-file | diff %t -
// RUN: hydra-opt %s --split-input-file --mlir-print-op-generic \
// RUN:   | hydra-opt --split-input-file | diff %t -

// Parentheses are printed where they change the meaning, and nowhere else.
// CHECK-LABEL: hydra.model @precedence
// BOUND-LABEL: hydra.model @precedence
// BOUND-SAME:  v01 = 17 : i64, v02 = 25 : i64, v03 = -6 : i64, v04 = 4 : i64,
// BOUND-SAME:  v05 = 10 : i64, v06 = 2 : i64, v07 = -5 : i64, v08 = 1 : i64, v09 = 2 : i64,
// BOUND-SAME:  v10 = -10 : i64, v11 = 5 : i64,
// BOUND-SAME:  w01 = true, w02 = false, w03 = true, w04 = true, w05 = false, w06 = true, w07 = false
hydra.model @precedence version 1 {
  hydra.symbols dims(a = 2, b = 3, c = 5) flags(p = true, q = false)
  // CHECK: hydra.derive v01 = a + b * c
  hydra.derive v01 = a + (b * c)
  // CHECK: hydra.derive v02 = (a + b) * c
  hydra.derive v02 = (a + b) * c
  // CHECK: hydra.derive v03 = a - b - c
  hydra.derive v03 = (a - b) - c
  // CHECK: hydra.derive v04 = a - (b - c)
  hydra.derive v04 = a - (b - c)
  // CHECK: hydra.derive v05 = b * 10 / (a + 1)
  hydra.derive v05 = b * 10 / (a + 1)
  // CHECK: hydra.derive v06 = b * 10 / (a + 1) / c
  hydra.derive v06 = ((b * 10) / (a + 1)) / c
  // CHECK: hydra.derive v07 = -a - b
  hydra.derive v07 = -a - b
  // CHECK: hydra.derive v08 = -(a - b)
  hydra.derive v08 = -(a - b)
  // CHECK: hydra.derive v09 = --a
  hydra.derive v09 = -(-a)
  // CHECK: hydra.derive v10 = -a * c
  hydra.derive v10 = (-a) * c
  // CHECK: hydra.derive v11 = a - -3
  hydra.derive v11 = a - -3
  // CHECK: hydra.derive w01 = p or q and q
  hydra.derive w01 = p or (q and q)
  // CHECK: hydra.derive w02 = (p or q) and q
  hydra.derive w02 = (p or q) and q
  // CHECK: hydra.derive w03 = not p == q
  hydra.derive w03 = not (p == q)
  // CHECK: hydra.derive w04 = not q and p
  hydra.derive w04 = (not q) and p
  // CHECK: hydra.derive w05 = not (q or p)
  hydra.derive w05 = not (q or p)
  // CHECK: hydra.derive w06 = a + 1 <= b
  hydra.derive w06 = (a + 1) <= b
  // CHECK: hydra.derive w07 = (a < b) == (b > c or q and p) and q
  hydra.derive w07 = (a < b) == ((b > c) or (q and p)) and q
}

// -----

// A truth value cannot be compared with the value of a comparison without parentheses, which stay.
// CHECK-LABEL: hydra.model @comparisons
// BOUND-LABEL: hydra.model @comparisons
// BOUND-SAME:  v1 = true, v2 = false, v3 = true, v4 = true, v5 = true, v6 = true, v7 = true, v8 = false
hydra.model @comparisons version 1 {
  hydra.symbols dims(a = 2, b = 3) reals(x = 2.0) choices(mode = fast of (fast, slow))
  // CHECK: hydra.derive v1 = (a == b) == false
  hydra.derive v1 = (a == b) == false
  // CHECK: hydra.derive v2 = a > b
  hydra.derive v2 = a > b
  // CHECK: hydra.derive v3 = a >= 2
  hydra.derive v3 = a >= 2
  // An integer equals the real number of its value.
  // CHECK: hydra.derive v4 = a == x
  hydra.derive v4 = a == x
  // A choice is compared with its options, from either side.
  // CHECK: hydra.derive v5 = mode == fast
  hydra.derive v5 = mode == fast
  // CHECK: hydra.derive v6 = not slow == mode
  hydra.derive v6 = not slow == mode
  // CHECK: hydra.derive v7 = x < 2.500000e+00
  hydra.derive v7 = x < 2.5
  // Integers that one real number stands for are still two.
  // CHECK: hydra.derive v8 = 9007199254740993 == 9007199254740992
  hydra.derive v8 = 9007199254740993 == 9007199254740992
}

// -----

// Integers stay exact; one real operand makes an operation real.
// CHECK-LABEL: hydra.model @numbers
// BOUND-LABEL: hydra.model @numbers
// BOUND-SAME:  v01 = 9223372036854775807 : i64, v02 = 3.500000e+00 : f64, v03 = 2 : i64,
// BOUND-SAME:  v04 = 7.000000e+00 : f64, v05 = -2 : i64, v06 = 1.000000e-05 : f64, v07 = 16 : i64
hydra.model @numbers version 1 {
  hydra.symbols dims(a = 7) reals(x = 2, y = 1.0e-5)
  hydra.derive v01 = 9223372036854775800 + a
  hydra.derive v02 = a / x
  hydra.derive v03 = 14 / a
  hydra.derive v04 = real(a)
  hydra.derive v05 = -14 / a
  hydra.derive v06 = y
  // CHECK: hydra.derive v07 = 16
  hydra.derive v07 = 0x10
}

// -----

// The functions. Rounding gives integers, halves to even; integers are already round.
// CHECK-LABEL: hydra.model @functions
// BOUND-LABEL: hydra.model @functions
// BOUND-SAME:  v01 = 3 : i64, v02 = -2 : i64, v03 = 2 : i64, v04 = 4 : i64, v05 = 7 : i64,
// BOUND-SAME:  v06 = 3.000000e+00 : f64, v07 = 1.000000e+00 : f64, v08 = 0.000000e+00 : f64,
// BOUND-SAME:  v09 = 0.000000e+00 : f64, v10 = 5.000000e-01 : f64, v11 = 8.000000e+00 : f64,
// BOUND-SAME:  v12 = 2 : i64, v13 = 9 : i64, v14 = 2.500000e+00 : f64, v15 = 5 : i64,
// BOUND-SAME:  v16 = 7 : i64, v17 = 2816 : i64
hydra.model @functions version 1 {
  hydra.symbols dims(a = 7, D = 768) reals(x = 2.5, ratio = 3.6) flags(p = true)
  // CHECK: hydra.derive v01 = ceil(x)
  hydra.derive v01 = ceil(x)
  // CHECK: hydra.derive v02 = round(-x)
  hydra.derive v02 = round(-x)
  hydra.derive v03 = floor(x)
  hydra.derive v04 = round(3.5)
  hydra.derive v05 = ceil(a)
  hydra.derive v06 = sqrt(9)
  hydra.derive v07 = exp(0)
  hydra.derive v08 = log(1)
  hydra.derive v09 = logit(0.5)
  hydra.derive v10 = sigmoid(0)
  // CHECK: hydra.derive v11 = pow(2, 3)
  hydra.derive v11 = pow(2, 3)
  // CHECK: hydra.derive v12 = min(a, 9, 2)
  hydra.derive v12 = min(a, 9, 2)
  hydra.derive v13 = max(a, 9, 2)
  hydra.derive v14 = min(a, x)
  hydra.derive v15 = clamp(a, 1, 5)
  // CHECK: hydra.derive v16 = select(p and a > 1, a, x)
  hydra.derive v16 = select(p and a > 1, a, x)
  // CHECK: hydra.derive v17 = 256 * ceil(floor(D * ratio) / 2.560000e+02)
  hydra.derive v17 = 256 * ceil(floor(D * ratio) / 256.0)
}

// -----

// Derived values build on one another, in order; a choice may be passed on.
// CHECK-LABEL: hydra.model @chain
// BOUND-LABEL: hydra.model @chain
// BOUND-SAME:  again = "slow", hd = 64 : i64, mode = "slow", other = false, same = true, twice = 128 : i64
hydra.model @chain version 1 {
  hydra.symbols dims(D = 768, H = 12) choices(mode = slow of (fast, slow))
  hydra.derive hd = D / H
  hydra.derive twice = 2 * hd
  hydra.derive again = mode
  hydra.derive same = again == slow
  hydra.derive other = again == fast
}

// -----

// Words of the syntax are not reserved beyond those of expressions.
// CHECK-LABEL: hydra.model @words
// BOUND-LABEL: hydra.model @words
// BOUND-SAME:  carry = 1 : i64, init = 6 : i64, min = 2 : i64, of = 3 : i64, when = 7 : i64
hydra.model @words version 1 {
  hydra.symbols dims(carry = 1, min = 2, of = 3)
  // CHECK: hydra.derive init = carry + min + of
  hydra.derive init = carry + min + of
  hydra.derive when = init + carry
}
