// RUN: hydra-opt %s --split-input-file --verify-diagnostics

// A body must be bound: chunks have a size.
hydra.model @m version 1 {
  // expected-error @+1 {{'hydra.entry' op is the body of a loop, but not bound}}
  hydra.entry @body(%x: [1, 3] f32) scan <4 over [0] stacked [0]> {
    hydra.return joined0 = %x
  }
}

// -----

hydra.model @m version 1 bound {symbols = {}} {
  // expected-error @+1 {{'hydra.entry' op loops over axis 2 of 'tensor<1x3xf32>'}}
  hydra.entry @body(%x: tensor<1x3xf32>) scan <4 over [2] stacked [0]> {
    hydra.return joined0 = %x : tensor<1x3xf32>
  }
}

// -----

hydra.model @m version 1 bound {symbols = {}} {
  // expected-error @+1 {{'hydra.entry' op carries 'tensor<1x3xf32>' on as 'tensor<3xf32>'}}
  hydra.entry @body(%x: tensor<1x3xf32>) scan <4 carried 1> {
    %y = hydra.reshape %x shape = [3] : tensor<1x3xf32>
    hydra.return carried0 = %y : tensor<3xf32>
  }
}

// -----

hydra.model @m version 1 bound {symbols = {}} {
  // expected-error @+1 {{'hydra.entry' op iterates 0 times and carries 0 values}}
  hydra.entry @body(%x: tensor<1x3xf32>) scan <0 over [0] stacked [0]> {
    hydra.return joined0 = %x : tensor<1x3xf32>
  }
}

// -----

hydra.model @m version 1 bound {symbols = {}} {
  // expected-error @+1 {{'hydra.entry' op has 1 arguments and 2 results; expected at least 1, and 1}}
  hydra.entry @body(%x: tensor<1x3xf32>) scan <4 over [0] stacked [0]> {
    hydra.return joined0 = %x, joined1 = %x : tensor<1x3xf32>, tensor<1x3xf32>
  }
}

// -----

// Bodies stand in front of who runs them, so none runs itself.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @a(%x: tensor<1x3xf32>) scan <1 over [0] stacked [0]> {
    // expected-error @+1 {{'hydra.loop' op runs @b, which does not stand in front of it}}
    %y = hydra.loop @b(%x) : (tensor<1x3xf32>) -> tensor<1x3xf32>
    hydra.return joined0 = %y : tensor<1x3xf32>
  }
  hydra.entry @b(%x: tensor<1x3xf32>) scan <1 over [0] stacked [0]> {
    %y = hydra.loop @a(%x) : (tensor<1x3xf32>) -> tensor<1x3xf32>
    hydra.return joined0 = %y : tensor<1x3xf32>
  }
}

// -----

hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @body(%x: tensor<1x3xf32>) scan <4 over [0] stacked [0]> {
    hydra.return joined0 = %x : tensor<1x3xf32>
  }
  hydra.entry @e(%x: tensor<5x3xf32>) {
    // expected-error @+1 {{'hydra.loop' op is given 'tensor<5x3xf32>'; expected 'tensor<4x3xf32>'}}
    %y = hydra.loop @body(%x) : (tensor<5x3xf32>) -> tensor<4x3xf32>
    hydra.return y = %y : tensor<4x3xf32>
  }
}

// -----

hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @f(%x: tensor<1x3xf32>) {
    hydra.return y = %x : tensor<1x3xf32>
  }
  hydra.entry @e(%x: tensor<4x3xf32>) {
    // expected-error @+1 {{'hydra.loop' op runs @f, which is no body of a loop}}
    %y = hydra.loop @f(%x) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    hydra.return y = %y : tensor<4x3xf32>
  }
}
