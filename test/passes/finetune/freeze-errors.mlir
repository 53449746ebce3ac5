// RUN: hydra-opt %s --split-input-file --verify-diagnostics --hydra-freeze="patterns=w?"

// Layers are to be written out first, as a pattern is one over `layers.0.w`.
// expected-error@+1 {{@layers has layers in stacks; run hydra-unroll-layers first}}
hydra.model @layers version 1 bound {preset = "", symbols = {}} {
  hydra.stack @layers[2] {
    hydra.param @w1 [4] init = ones
  }
  hydra.entry @loss() ids() {
    hydra.return
  }
}

// -----

// expected-error@+1 {{--freeze: 'w?' matches no parameter; they are a, b, c, ...}}
hydra.model @others version 1 bound {preset = "", symbols = {}} {
  hydra.param @a [4] init = ones
  hydra.param @b [4] init = ones
  hydra.param @c [4] init = ones
  hydra.param @w10 [4] init = ones
}

// -----

// expected-error@+1 {{--freeze: leaves no parameter of @all to train; all 2 are frozen}}
hydra.model @all version 1 bound {preset = "", symbols = {}} {
  hydra.param @w1 [4] init = ones
  hydra.param @v [4] init = ones frozen
}
