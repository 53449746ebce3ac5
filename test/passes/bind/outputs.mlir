// RUN: hydra-opt %s | hydra-opt | FileCheck %s --check-prefix=TEXT
// RUN: hydra-opt %s --hydra-bind | FileCheck %s --check-prefix=NONE
// RUN: hydra-opt %s --hydra-bind="set=taxed=true,rate=0.5" | FileCheck %s --check-prefix=BOTH
// RUN: hydra-opt %s --hydra-bind="set=rate=0.5" | FileCheck %s --check-prefix=ONE
// RUN: sed 's/ when taxed/ when 3/' %s | not hydra-opt --hydra-bind 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: sed 's/ when taxed/ when layer > 0/' %s | not hydra-opt --hydra-bind 2>&1 | FileCheck %s --check-prefix=LAYER

// An output with a condition is one of the configurations for which that holds.
// TEXT: hydra.return total = %{{.*}}, tax = %{{.*}} when taxed, share = %{{.*}} when rate > 0.0{{.*}}, rest = %{{.*}} updates(@seen = %{{.*}})
// NONE: hydra.return total = %{{[a-z0-9_]+}}, rest = %{{[a-z0-9_]+}} updates(@seen = %{{[a-z0-9_]+}}) : tensor<f32>, tensor<f32>, tensor<f32>
// BOTH: hydra.return total = %{{[a-z0-9_]+}}, tax = %{{[a-z0-9_]+}}, share = %{{[a-z0-9_]+}}, rest = %{{[a-z0-9_]+}} updates(
// ONE: hydra.return total = %{{[a-z0-9_]+}}, share = %{{[a-z0-9_]+}}, rest = %{{[a-z0-9_]+}} updates(
// NUMBER: error: 'hydra.return' op has a condition of output "tax" that is neither true nor false
// LAYER: error: 'hydra.return' op {{.*}}layer
hydra.model @m version 1 {
  hydra.symbols reals(rate = 0.0) flags(taxed = false)
  hydra.state @seen [] init = zeros
  hydra.entry @run(%x: [4] f32) {
    %total = hydra.let sum(%x, axes = [0])
    %tax, %share, %rest = hydra.let when(taxed, %total * 0.25, %total), %total * rate, %total * 0.75
    %seen = hydra.let @seen + %total
    hydra.return total = %total, tax = %tax when taxed, share = %share when rate > 0.0, rest = %rest updates(@seen = %seen)
  }
}
