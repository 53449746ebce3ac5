// RUN: hydra-opt %s --split-input-file --verify-diagnostics

// A transient buffer outside of programs.
plan.module @m {
  // expected-error @+1 {{persistent and host buffers belong into the module, transient ones into a program}}
  %x = plan.buffer transient other : memref<16xf32>
}

// -----

// An unknown segment.
plan.module @m {
  // expected-error @+2 {{expected ::hydra::plan::Segment to be one of: persistent, transient}}
  // expected-error @+1 {{failed to parse Plan_SegmentAttr}}
  %x = plan.buffer fast other : memref<16xf32>
}

// -----

// A buffer with strides.
plan.module @m {
  // expected-error @+1 {{must be dense and of static shape}}
  %x = plan.buffer persistent param : memref<16xf32, strided<[2]>>
}

// -----

// An offset between alignments.
plan.module @m {
  // expected-error @+1 {{lies at byte 8; expected a multiple of 16}}
  %x = plan.buffer persistent param at 8 : memref<16xf32>
}

// -----

// A view beyond its buffer.
plan.module @m {
  %x = plan.buffer persistent param : memref<16xf32>
  // expected-error @+1 {{ends 68 bytes behind the start of a buffer of 64}}
  %v = plan.view %x plus 1 : memref<16xf32> to memref<16xf32>
}

// -----

// A view of another type.
plan.module @m {
  %x = plan.buffer persistent param : memref<16xf32>
  // expected-error @+1 {{changes the element type}}
  %v = plan.view %x plus 0 : memref<16xf32> to memref<16xi32>
}

// -----

// A launch of nothing.
plan.module @m {
  %x = plan.buffer persistent param : memref<16xf32>
  plan.program @p {
    // expected-error @+1 {{there is no kernel @none}}
    plan.launch @none(read %x : memref<16xf32>) {label = "none"}
  }
}

// -----

// A loop that moves a buffer out of its bytes.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<4x16xf32>
    %row = plan.view %x plus 0 : memref<4x16xf32> to memref<16xf32>
    // expected-error @+1 {{moves a buffer out of its 256 bytes}}
    plan.loop 5 (%row by 64 : memref<16xf32>) {
    }
  }
}

// -----

// A loop that does not run.
plan.module @m {
  plan.program @p {
    // expected-error @+1 {{runs 0 times; expected at least once}}
    plan.loop 0 () {
    }
  }
}

// -----

// A kernel of no slices.
plan.module @m {
  plan.program @p {
    // expected-error @+1 {{has 0 slices; expected at least one}}
    plan.loop 4 () slices 0 {
    }
  }
}

// -----

// A selector that is no integer.
plan.module @m {
  plan.program @p {
    %s = plan.buffer transient other : memref<f32>
    // expected-error @+1 {{selects by something that is not one i32}}
    plan.switch %s : memref<f32> {
    }
  }
}

// -----

// A kernel's number of rows that is no integer, and one that has no whole number of its rows.
plan.module @m {
  // expected-error @+1 {{is counted by something that is not one i32}}
  plan.kernel @k rows 4 grain 1 counted 1 [memref<4xf32>, memref<f32>] {
  }
}

// -----

plan.module @m {
  // expected-error @+1 {{has 4 rows, counted by 3}}
  plan.kernel @k rows 4 grain 1 counted 3 [memref<4xf32>, memref<i32>] {
  }
}

// -----

plan.module @m {
  // expected-error @+1 {{is counted but no group of row-wise operations}}
  plan.kernel @k rows 4 grain 1 combines 2 counted 1 [memref<4xf32>, memref<i32>] {
  }
}

// -----

// An event that nothing signals.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<16xf32>
    // expected-error @+1 {{waits for event 3, which nothing before signals}}
    plan.fill 0.0 -> (%x : memref<16xf32>) {label = "fill", waits = array<i64: 3>}
  }
}

// -----

// An event signalled twice.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<16xf32>
    plan.fill 0.0 -> (%x : memref<16xf32>) {label = "fill", signals = 0 : i64}
    // expected-error @+1 {{signals event 0 a second time}}
    plan.fill 0.0 -> (%x : memref<16xf32>) {label = "fill", signals = 0 : i64}
  }
}

// -----

// Two streams that write the same buffer in no order.
plan.module @m {
  plan.program @p streams 2 {
    %x = plan.buffer transient other : memref<16xf32>
    plan.fill 0.0 -> (%x : memref<16xf32>) {label = "fill"}
    // expected-error @+1 {{shares bytes with block 0 of its list, one of them writes, and neither stream nor event orders the two}}
    plan.fill 1.0 -> (%x : memref<16xf32>) {label = "fill", stream = 1 : i64}
  }
}

// -----

// Two buffers at the same bytes, on two streams in no order.
plan.module @m {
  plan.program @p streams 2 {
    %x = plan.buffer transient other at 0 : memref<16xf32>
    %y = plan.buffer transient other at 32 : memref<16xf32>
    plan.fill 0.0 -> (%x : memref<16xf32>) {label = "fill"}
    // expected-error @+1 {{neither stream nor event orders the two}}
    plan.fill 1.0 -> (%y : memref<16xf32>) {label = "fill", stream = 1 : i64}
  }
}

// -----

// A collective along an axis that is not there.
plan.module @m {
  plan.mesh_axis "data" 2
  plan.program @p {
    %x = plan.buffer transient other : memref<16xf32>
    %y = plan.buffer transient other : memref<16xf32>
    // expected-error @+1 {{goes along axis 1 of a mesh of 1}}
    plan.all_to_all(%x : memref<16xf32>) -> (%y : memref<16xf32>) along 1
  }
}

// -----

// A gather into too few bytes.
plan.module @m {
  plan.mesh_axis "data" 3
  plan.program @p {
    %x = plan.buffer transient other : memref<16xf32>
    %y = plan.buffer transient other : memref<32xf32>
    // expected-error @+1 {{moves 'memref<16xf32>' to 'memref<32xf32>' between 3 ranks}}
    plan.all_gather(%x : memref<16xf32>) -> (%y : memref<32xf32>) along 0
  }
}

// -----

// A collective in a loop.
plan.module @m {
  plan.mesh_axis "data" 2
  plan.program @p {
    %x = plan.buffer transient other : memref<16xf32>
    %y = plan.buffer transient other : memref<16xf32>
    plan.loop 4 (%x by 0 : memref<16xf32>) {
      // expected-error @+1 {{stands in a loop or a case; ranks meet in programs only}}
      plan.all_to_all(%x : memref<16xf32>) -> (%y : memref<16xf32>) along 0
    }
  }
}

// -----

// A unit that is cut along an axis that is not there.
plan.module @m {
  plan.mesh_axis "data" 2
  %u = plan.buffer persistent param : memref<2x1024xf32>
  // expected-error @+1 {{is cut over "model", which is no axis of the mesh}}
  plan.variable parameter "w" = %u member <[64] at 0 over "model"> init <zeros> : memref<2x1024xf32>
}

// -----

// A member that reaches beyond its unit.
plan.module @m {
  plan.mesh_axis "data" 2
  %u = plan.buffer persistent param : memref<2x1024xf32>
  // expected-error @+1 {{with the elements #plan.member<[64, 64] at 1 over "data"> does not fit into a unit of 4096}}
  plan.variable parameter "w" = %u member <[64, 64] at 1 over "data"> init <zeros> : memref<2x1024xf32>
}

// -----

// A member of a unit with strides.
plan.module @m {
  %x = plan.buffer persistent param : memref<16xf32>
  %u = plan.view %x plus 0 : memref<16xf32> to memref<8xf32, strided<[2]>>
  // expected-error @+1 {{is a member of a buffer with strides; a unit is dense}}
  plan.variable parameter "w" = %u member <[4] at 0> init <zeros> : memref<8xf32, strided<[2]>>
}

// -----

// A transfer that stays on the device.
plan.module @m {
  plan.program @p {
    %x = plan.buffer transient other : memref<16xf32>
    %y = plan.buffer transient other : memref<16xf32>
    // expected-error @+1 {{moves between two buffers of one side; expected one of the host's memory}}
    plan.transfer(%x : memref<16xf32>) -> (%y : memref<16xf32>) {label = "transfer"}
  }
}

// -----

// A transfer of strided elements.
plan.module @m {
  %m = plan.buffer host opt_state : memref<16xf32>
  plan.program @p {
    %x = plan.buffer transient other : memref<32xf32>
    %y = plan.view %x plus 0 : memref<32xf32> to memref<16xf32, strided<[2]>>
    // expected-error @+1 {{expected two dense buffers of the same shape and element type}}
    plan.transfer(%m : memref<16xf32>) -> (%y : memref<16xf32, strided<[2]>>) {label = "transfer"}
  }
}

// -----

// A step of the device that reaches into the host's memory.
plan.module @m {
  %m = plan.buffer host opt_state : memref<16xf32>
  plan.program @p {
    // expected-error @+1 {{touches memory of the host, which only transfers do}}
    plan.fill 1.0 -> (%m : memref<16xf32>) {label = "fill"}
  }
}

// -----

// Memory of the host in a program.
plan.module @m {
  plan.program @p {
    // expected-error @+1 {{persistent and host buffers belong into the module, transient ones into a program}}
    %m = plan.buffer host opt_state : memref<16xf32>
  }
}
