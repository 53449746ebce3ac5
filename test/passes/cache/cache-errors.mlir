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
