// What collectives, meshes and rows refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{'hydra.all_reduce' op goes over 'd', but the model has no mesh}}
    %y = hydra.all_reduce %x over = "d" ranks = 2 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{'hydra.all_reduce' op goes over 'e', which is no axis of the model's mesh}}
    %y = hydra.all_reduce %x over = "e" ranks = 2 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{'hydra.rank' op goes over 3 ranks; axis 'd' of the mesh has 2}}
    %y = hydra.rank over = "d" ranks = 3 : tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{hydra.all_gather: goes over 0 ranks; expected at least 1}}
    %y = hydra.all_gather %x axis = 0 over = "d" ranks = 0 number = 0 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{hydra.all_gather: axis -1 is negative}}
    %y = hydra.all_gather %x axis = -1 over = "d" ranks = 2 number = 0 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{hydra.all_to_all: axis 2 of a tensor with 2 dimensions}}
    %y = hydra.all_to_all %x axis = 2 over = "d" ranks = 2 number = 0 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{hydra.all_to_all: cannot cut axis 1 of [6, 4] into 3 equal pieces}}
    %y = hydra.all_to_all %x axis = 1 over = "d" ranks = 3 number = 0 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{hydra.reduce_scatter: cannot cut axis 1 of [6, 4] into 3 equal pieces}}
    %y = hydra.reduce_scatter %x axis = 1 over = "d" ranks = 3 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    %t = hydra.compare %c, %c is = "eq" : tensor<6xi32>, tensor<6xi32>
    // expected-error@+1 {{hydra.all_reduce: cannot add truth values (i1)}}
    %y = hydra.all_reduce %t over = "d" ranks = 2 : tensor<6xi1>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    %t = hydra.compare %c, %c is = "eq" : tensor<6xi32>, tensor<6xi32>
    // expected-error@+1 {{hydra.reduce_scatter: cannot add truth values (i1)}}
    %y = hydra.reduce_scatter %t axis = 0 over = "d" ranks = 2 : tensor<6xi1>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %s: tensor<f32>) {
    // expected-error@+1 {{hydra.all_reduce: start}}
    %y = hydra.all_reduce %x, %s over = "d" ranks = 2 : tensor<6x4xf32>, tensor<f32>
    hydra.return
  }
}

// -----

// Ranks meet outside of loops only.
hydra.model @m version 1 mesh <["d"], [2]> bound {} {
  hydra.entry @body(%x: tensor<1x3xf32>) scan <4 over [0] stacked [0]> {
    // expected-error@+1 {{'hydra.all_reduce' op stands in a loop or a region; ranks meet in programs only}}
    %y = hydra.all_reduce %x over = "d" ranks = 2 : tensor<1x3xf32>
    hydra.return y = %y : tensor<1x3xf32>
  }
  hydra.entry @e(%x: tensor<4x3xf32>) {
    %y = hydra.loop @body(%x) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    hydra.return y = %y : tensor<4x3xf32>
  }
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{'hydra.entry' op has rows that are no dimensions of its arguments and outputs}}
  hydra.entry @e(%x: tensor<4x3xf32>) rows <2 arguments [2]> {
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{'hydra.entry' op is the body of a loop, which has no batch of its own}}
  hydra.entry @body(%x: tensor<1x3xf32>) scan <4 over [0] stacked [0]> rows <2 arguments [0]> {
    hydra.return y = %x : tensor<1x3xf32>
  }
}

// -----

// expected-error@+1 {{a mesh has 2 axes and 1 sizes; expected as many, and at least one}}
hydra.model @m version 1 mesh <["a", "b"], [2]> bound {} {
}

// -----

// expected-error@+1 {{an axis of a mesh needs a name of its own; found 'a'}}
hydra.model @m version 1 mesh <["a", "a"], [2, 2]> bound {} {
}

// -----

// expected-error@+1 {{axis 'b' of the mesh has 100000 ranks; expected 1 to 65536 in all}}
hydra.model @m version 1 mesh <["a", "b"], [2, 100000]> bound {} {
}

// -----

// Sums over several axes are one after the other.
hydra.model @m version 1 mesh <["n", "d"], [3, 2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{'hydra.reduce_scatter' op goes over 'd*n', several axes at once; expected one after the other}}
    %y = hydra.reduce_scatter %x axis = 0 over = "d*n" ranks = 6 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["n", "d"], [3, 2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{'hydra.all_gather' op goes over 2 ranks; axis 'd*n' of the mesh has 6}}
    %y = hydra.all_gather %x axis = 0 over = "d*n" ranks = 2 number = 0 : tensor<6x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 mesh <["n", "d"], [3, 2]> bound {} {
  hydra.entry @e(%x: tensor<6x4xf32>, %c: tensor<6xi32>) {
    // expected-error@+1 {{'hydra.rank' op goes over 'd*d', which is no axis of the model's mesh}}
    %y = hydra.rank over = "d*d" ranks = 4 : tensor<i32>
    hydra.return
  }
}

// -----

// expected-error@+1 {{axis 'n*d' of a mesh has a '*' in its name, which stands between names}}
hydra.model @m version 1 mesh <["n*d"], [3]> bound {} {
}

// -----

// expected-error@+1 {{axis '=' of a mesh: expected a name of letters, digits, '_', '-' and '.'}}
hydra.model @m version 1 mesh <["="], [3]> bound {} {
}
