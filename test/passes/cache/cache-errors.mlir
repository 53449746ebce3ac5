// What hydra-cache refuses of a program as a whole: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics --hydra-cache=context=8

// expected-error@+3 {{@logits returns 'token', which hydra-cache adds}}
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %y = hydra.linear %x, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return token = %y : tensor<1x2x5xf32>
  }
}

// -----

// expected-error@+3 {{@logits has an argument 'position', which hydra-cache adds}}
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>, %position: tensor<1xf32>) role(decode) ids(5, 0) {
    hydra.return
  }
}

// -----

// expected-error@+3 {{@logits reads on; expected one result, the scores [B, S, V]}}
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    hydra.return logits = %x, hidden = %x : tensor<1x2x4xf32>, tensor<1x2x4xf32>
  }
}

// -----

// A transform of what tokens have reads them together.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %rows = hydra.transpose %x order = [0, 2, 1] : tensor<1x2x4xf32>
    // expected-error@+1 {{reads several tokens of a sequence together}}
    %spectrum = hydra.rfft %rows : tensor<1x4x2xf32>
    %back = hydra.irfft %spectrum : tensor<1x4x2x2xf32>
    %z = hydra.transpose %back order = [0, 2, 1] : tensor<1x4x2xf32>
    %y = hydra.linear %z, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
}

// -----

// Sequences of a call are of other texts, and some of them rest.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<2x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<2x2xi32>, tensor<5x4xf32>
    // expected-error@+1 {{reads several sequences of the batch together, which programs that read on have side by side; expected a batch of 1}}
    %mean = hydra.mean %x axes = [0] keep : tensor<2x2x4xf32>
    %all = hydra.broadcast %mean shape = [2, 2, 4] : tensor<1x2x4xf32>
    %off = hydra.sub %x, %all : tensor<2x2x4xf32>, tensor<2x2x4xf32>
    %y = hydra.linear %off, %e : tensor<2x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<2x2x5xf32>
  }
}

// -----

// A scan begins with the same for all sequences, and carries what is of each into the next call.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<2x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<2x2xi32>, tensor<5x4xf32>
    %zero = hydra.constant value = 0.0 shape = [2, 2, 4] : tensor<2x2x4xf32>
    %in:2 = hydra.scan_begin %x, %zero {axis = 1 : i64, chunk = 2 : i64, sequences = 1 : i64} : tensor<2x2x4xf32>, tensor<2x2x4xf32> -> tensor<2x2x4xf32>, tensor<2x2x4xf32>
    // expected-error@+1 {{reads several sequences of the batch together}}
    %mean = hydra.mean %in#1 axes = [0] keep : tensor<2x2x4xf32>
    %all = hydra.broadcast %mean shape = [2, 2, 4] : tensor<1x2x4xf32>
    %next = hydra.add %in#0, %all : tensor<2x2x4xf32>, tensor<2x2x4xf32>
    %out:2 = hydra.scan_end %next, %next {axis = 1 : i64, sequences = 1 : i64} : tensor<2x2x4xf32>, tensor<2x2x4xf32> -> tensor<2x2x4xf32>, tensor<2x2x4xf32>
    %y = hydra.linear %out#0, %e : tensor<2x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<2x2x5xf32>
  }
}
