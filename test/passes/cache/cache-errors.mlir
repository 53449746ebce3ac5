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

// -----

// Keys have a row for each token, which says of no token where it stands.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.param @at [1, 2, 1, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %k = hydra.use @at : tensor<1x2x1x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %q = hydra.reshape %x shape = [1, 2, 1, 4] : tensor<1x2x4xf32>
    // expected-error@+1 {{gives each token of a call other numbers, which do not follow from where it stands in its sequence; expected hydra.iota with positions}}
    %o = hydra.attention %q, %k, %q scale = 1.0 causal : tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>
    %z = hydra.reshape %o shape = [1, 2, 4] : tensor<1x2x1x4xf32>
    %y = hydra.linear %z, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
}

// -----

// So has one of the sequences of a scan over tokens.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %i = hydra.iota shape = [1, 2, 4] axis = 1 dtype = f32 : tensor<1x2x4xf32>
    %zero = hydra.constant value = 0.0 shape = [1, 2, 4] : tensor<1x2x4xf32>
    // expected-error@+1 {{gives each token of a call other numbers, which do not follow from where it stands in its sequence; expected hydra.iota with positions}}
    %in:3 = hydra.scan_begin %x, %i, %zero {axis = 1 : i64, chunk = 2 : i64, sequences = 2 : i64} : tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32> -> tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %next = hydra.mul %in#0, %in#1 : tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %out:2 = hydra.scan_end %next, %in#2 {axis = 1 : i64, sequences = 1 : i64} : tensor<1x2x4xf32>, tensor<1x2x4xf32> -> tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %y = hydra.linear %out#0, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
}

// -----

// In a scan from token to token, what is read from outside is of all tokens of the call.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %zero = hydra.constant value = 0.0 shape = [1, 1, 4] : tensor<1x1x4xf32>
    %in:2 = hydra.scan_begin %x, %zero {axis = 1 : i64, chunk = 1 : i64, sequences = 1 : i64} : tensor<1x2x4xf32>, tensor<1x1x4xf32> -> tensor<1x2x4xf32>, tensor<1x1x4xf32>
    // expected-error@+1 {{reads several tokens of a sequence together}}
    %all = hydra.mean %x axes = [1] keep : tensor<1x2x4xf32>
    %first = hydra.slice %in#0 axis = 1 start = 0 size = 1 : tensor<1x2x4xf32>
    %one = hydra.add %in#1, %first : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    %second = hydra.slice %in#0 axis = 1 start = 1 size = 1 : tensor<1x2x4xf32>
    %then = hydra.add %one, %second : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    %two = hydra.mul %then, %all : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    %rows = hydra.concat %one, %two axis = 1 : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    %out:2 = hydra.scan_end %rows, %two {axis = 1 : i64, sequences = 1 : i64} : tensor<1x2x4xf32>, tensor<1x1x4xf32> -> tensor<1x2x4xf32>, tensor<1x1x4xf32>
    %y = hydra.linear %out#0, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
}

// -----

// Positions are those of the tokens of a call.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    // expected-error@+1 {{counts 4 positions in a call of 2 tokens; expected one for each}}
    %i = hydra.iota shape = [1, 4] axis = 1 dtype = f32 positions : tensor<1x4xf32>
    %pairs = hydra.reshape %i shape = [1, 2, 2] : tensor<1x4xf32>
    %p = hydra.mean %pairs axes = [2] keep : tensor<1x2x2xf32>
    %all = hydra.broadcast %p shape = [1, 2, 4] : tensor<1x2x1xf32>
    %z = hydra.add %x, %all : tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %y = hydra.linear %z, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
}

// -----

// A scan over tokens knows the tokens of the call alone.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @logits(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %zero = hydra.constant value = 0.0 shape = [1, 1, 4] : tensor<1x1x4xf32>
    %in:2 = hydra.scan_begin %x, %zero {axis = 1 : i64, chunk = 2 : i64, sequences = 1 : i64} : tensor<1x2x4xf32>, tensor<1x1x4xf32> -> tensor<1x2x4xf32>, tensor<1x1x4xf32>
    // expected-error@+1 {{counts positions inside of a scan over tokens; expected it in front of the scan}}
    %i = hydra.iota shape = [1, 2, 4] axis = 1 dtype = f32 positions : tensor<1x2x4xf32>
    %z = hydra.mul %in#0, %i : tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %out:2 = hydra.scan_end %z, %in#1 {axis = 1 : i64, sequences = 1 : i64} : tensor<1x2x4xf32>, tensor<1x1x4xf32> -> tensor<1x2x4xf32>, tensor<1x1x4xf32>
    %y = hydra.linear %out#0, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
}

// -----

// `S` is the number of tokens of a call, and no number of the model.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.entry @prefill(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %part = hydra.constant value = 0.5 shape = [1, 2, 4] : tensor<1x2x4xf32>
    %z = hydra.mul %x, %part : tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %y = hydra.linear %z, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
  hydra.entry @decode(%tokens: tensor<1x1xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x1xi32>, tensor<5x4xf32>
    // expected-error@+1 {{has value = 1.000000e+00 in calls of 1 tokens and 5.000000e-01 in calls of 2; expected `length`, of whole sequences, instead of `S`}}
    %part = hydra.constant value = 1.0 shape = [1, 1, 4] : tensor<1x1x4xf32>
    %z = hydra.mul %x, %part : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    %y = hydra.linear %z, %e : tensor<1x1x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x1x5xf32>
  }
}

// -----

// The same of a whole number, where a call of one token has a broadcast less.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.param @shift [1, 1, 4] init = zeros
  hydra.entry @prefill(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %shift = hydra.use @shift : tensor<1x1x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %all = hydra.broadcast %shift shape = [1, 2, 4] : tensor<1x1x4xf32>
    %shifted = hydra.add %x, %all : tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %count = hydra.constant value = 2 shape = [1, 2, 4] : tensor<1x2x4xf32>
    %z = hydra.div %shifted, %count : tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %y = hydra.linear %z, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
  hydra.entry @decode(%tokens: tensor<1x1xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %shift = hydra.use @shift : tensor<1x1x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x1xi32>, tensor<5x4xf32>
    %shifted = hydra.add %x, %shift : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    // expected-error@+1 {{has value = 1 in calls of 1 tokens and 2 in calls of 2; expected `length`, of whole sequences, instead of `S`}}
    %count = hydra.constant value = 1 shape = [1, 1, 4] : tensor<1x1x4xf32>
    %z = hydra.div %shifted, %count : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    %y = hydra.linear %z, %e : tensor<1x1x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x1x5xf32>
  }
}

// -----

// Nor is one that says which rows of a table are read.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.param @pos [8, 4] init = zeros
  hydra.entry @prefill(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %pos = hydra.use @pos : tensor<8x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %row = hydra.slice %pos axis = 0 start = 1 size = 1 : tensor<8x4xf32>
    %all = hydra.broadcast %row shape = [1, 2, 4] : tensor<1x4xf32>
    %z = hydra.add %x, %all : tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %y = hydra.linear %z, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
  hydra.entry @decode(%tokens: tensor<1x1xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %pos = hydra.use @pos : tensor<8x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x1xi32>, tensor<5x4xf32>
    // expected-error@+1 {{has start = 0 in calls of 1 tokens and 1 in calls of 2; expected `length`, of whole sequences, instead of `S`}}
    %row = hydra.slice %pos axis = 0 start = 0 size = 1 : tensor<8x4xf32>
    %all = hydra.broadcast %row shape = [1, 1, 4] : tensor<1x4xf32>
    %z = hydra.add %x, %all : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    %y = hydra.linear %z, %e : tensor<1x1x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x1x5xf32>
  }
}

// -----

// Nor is a mean of as many rows of a table as a call has tokens.
hydra.model @m version 1 bound {} {
  hydra.param @e [5, 4] init = zeros
  hydra.param @pos [8, 4] init = zeros
  hydra.entry @prefill(%tokens: tensor<1x2xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %pos = hydra.use @pos : tensor<8x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x2xi32>, tensor<5x4xf32>
    %rows = hydra.slice %pos axis = 0 start = 0 size = 2 : tensor<8x4xf32>
    %mean = hydra.mean %rows axes = [0] : tensor<2x4xf32>
    %all = hydra.broadcast %mean shape = [1, 2, 4] : tensor<4xf32>
    %z = hydra.mul %x, %all : tensor<1x2x4xf32>, tensor<1x2x4xf32>
    %y = hydra.linear %z, %e : tensor<1x2x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x2x5xf32>
  }
  hydra.entry @decode(%tokens: tensor<1x1xi32>) role(decode) ids(5) {
    %e = hydra.use @e : tensor<5x4xf32>
    %pos = hydra.use @pos : tensor<8x4xf32>
    %x = hydra.embedding %tokens, %e : tensor<1x1xi32>, tensor<5x4xf32>
    %rows = hydra.slice %pos axis = 0 start = 0 size = 1 : tensor<8x4xf32>
    // expected-error@+1 {{has an operand tensor<1x4xf32> in calls of 1 tokens and tensor<2x4xf32> in calls of 2; expected `length`, of whole sequences, instead of `S`}}
    %mean = hydra.mean %rows axes = [0] : tensor<1x4xf32>
    %all = hydra.broadcast %mean shape = [1, 1, 4] : tensor<4xf32>
    %z = hydra.mul %x, %all : tensor<1x1x4xf32>, tensor<1x1x4xf32>
    %y = hydra.linear %z, %e : tensor<1x1x4xf32>, tensor<5x4xf32>
    hydra.return logits = %y : tensor<1x1x5xf32>
  }
}
