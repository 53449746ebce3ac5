// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-form-fusions --hydra-assign-layouts --hydra-to-plan | FileCheck %s

// Parameters are persistent, inputs and results transient; a group becomes a kernel and its launch,
// and takes over the buffer of an operand that dies there, as a value of its own to reports.
// CHECK-LABEL: plan.module @m
// CHECK: %[[W:.*]] = plan.buffer persistent param : memref<8x4xf32>
// CHECK: plan.variable parameter "w" = %[[W]] init <normal(2.000000e-02)> group "default"
// CHECK: plan.kernel @[[K:.*]] rows
// CHECK: hydra.fused
// CHECK: plan.program @y
// CHECK: %[[X:.*]] = plan.buffer transient other : memref<3x4xf32>
// CHECK: plan.input "x" = %[[X]] values 0
// CHECK: %[[Y:.*]] = plan.buffer transient act.ffn : memref<3x8xf32>
// CHECK: plan.matmul(%[[X]] : memref<3x4xf32>, %[[W]] : memref<8x4xf32>) -> (%[[Y]] : memref<3x8xf32>) {{{.*}}transpose_b}
// CHECK: %[[Z:.*]] = plan.view %[[Y]] plus 0 as act.ffn : memref<3x8xf32> to memref<3x8xf32>
// CHECK: plan.launch @[[K]](read %[[Y]] : memref<3x8xf32>, write %[[Z]] : memref<3x8xf32>)
// CHECK: plan.output "y" = %[[Z]]
hydra.model @m version 1 {
  hydra.param @w [8, 4] init = normal(0.02)
  hydra.entry @y(%x: [3, 4] f32) {
    %w = hydra.use @w
    %a = hydra.linear %x, %w
    %y = hydra.silu %a
    hydra.return y = %y
  }
}

// -----

// A new value of a state is written over the old one where nothing reads the old one later.
// CHECK-LABEL: plan.module @state
// CHECK: %[[S:.*]] = plan.buffer persistent
// CHECK: plan.launch @{{.*}}(read %{{.*}}, read %[[S]] : memref<4xf32>, write %[[S]] : memref<4xf32>)
// CHECK-NOT: plan.copy
hydra.model @state version 1 {
  hydra.state @s [4] init = zeros
  hydra.entry @step(%x: [4] f32) {
    %s = hydra.use @s
    %y = hydra.add %x, %s
    hydra.return updates(@s = %y)
  }
}

// -----

// So is one that is computed in another shape.
// CHECK-LABEL: plan.module @reshaped
// CHECK: %[[S:.*]] = plan.buffer persistent
// CHECK: %[[NEW:.*]] = plan.view %[[S]] plus 0 : memref<2x2xf32> to memref<4xf32>
// CHECK: plan.launch @{{.*}}(read %{{.*}}, read %{{.*}} : memref<4xf32>, write %[[NEW]] : memref<4xf32>)
// CHECK-NOT: plan.copy
hydra.model @reshaped version 1 {
  hydra.state @s [2, 2] init = zeros
  hydra.entry @step(%x: [4] f32) {
    %s = hydra.use @s
    %old = hydra.reshape %s shape = [4]
    %new = hydra.add %x, %old
    %y = hydra.reshape %new shape = [2, 2]
    hydra.return updates(@s = %y)
  }
}

// -----

// The old value is also an output: the new one is copied in at the end.
// CHECK-LABEL: plan.module @both
// CHECK: plan.launch
// CHECK: plan.copy(%[[S:.*]] : memref<4xf32>) -> (%[[OLD:.*]] : memref<4xf32>)
// CHECK: plan.copy(%{{.*}} : memref<4xf32>) -> (%[[S]] : memref<4xf32>)
// CHECK: plan.output "old" = %[[OLD]]
hydra.model @both version 1 {
  hydra.state @s [4] init = zeros
  hydra.entry @step(%x: [4] f32) {
    %s = hydra.use @s
    %y = hydra.add %x, %s
    hydra.return old = %s updates(@s = %y)
  }
}

// -----

// A part of a concatenation along the first axis is computed in its place.
// CHECK-LABEL: plan.module @concat
// CHECK: %[[ALL:.*]] = plan.buffer transient {{.*}} : memref<5x4xf32>
// CHECK: %[[PART:.*]] = plan.view %[[ALL]] plus 0
// CHECK: plan.launch @{{.*}}(read %{{.*}}, write %[[PART]]
// CHECK: %[[REST:.*]] = plan.view %[[ALL]] plus 8
// CHECK: plan.copy(%{{.*}}) -> (%[[REST]]
hydra.model @concat version 1 {
  hydra.entry @step(%x: [2, 4] f32, %z: [3, 4] f32) {
    %y = hydra.exp %x
    %c = hydra.concat %y, %z axis = 0
    hydra.return c = %c
  }
}

// -----

// Fourier transforms are steps of one kind.
// CHECK-LABEL: plan.module @transforms
// CHECK: plan.fft(%{{.*}} : memref<3x6xf32>) -> (%[[S:.*]] : memref<3x4x2xf32>)
// CHECK: plan.fft(%[[S]] : memref<3x4x2xf32>) -> (%{{.*}} : memref<3x6xf32>) {{{.*}}inverse{{.*}}}
hydra.model @transforms version 1 {
  hydra.entry @y(%x: [3, 6] f32) {
    %s = hydra.rfft %x
    %y = hydra.irfft %s real_ends
    hydra.return y = %y
  }
}

// -----

// Recurrences are steps of one kind: backward the gradient is in front, and those of operands are behind.
// CHECK-LABEL: plan.module @recurrences
// CHECK: plan.linear_recurrence(%[[X:.*]], %[[Q:.*]], %[[Q]], %[[Q]], %[[Q]], %[[BEGINS:.*]] : memref<2x3x4xf32>, {{.*}}, memref<2x3x1xf32>) -> (%[[Y:.*]] : memref<2x3x4xf32>)
// CHECK-NOT: backward
// CHECK: plan.linear_recurrence(%[[Y]], %[[X]], %[[Q]], %[[Q]], %[[Q]], %[[Q]] : {{.*}}) -> (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : memref<2x3x4xf32>, memref<4x5xf32>, memref<4x5xf32>, memref<4x5xf32>, memref<4x5xf32>) {{{.*}}backward{{.*}}}
hydra.model @recurrences version 1 {
  hydra.entry @y(%x: [2, 3, 4] f32, %q: [4, 5] f32, %begins: [2, 3, 1] f32) {
    %y = hydra.linear_recurrence %x, %q, %q, %q, %q, %begins
    %dx, %dqr, %dqi, %dcr, %dci = hydra.linear_recurrence_grad %y, %x, %q, %q, %q, %q
    hydra.return a = %dx, b = %dqr, c = %dqi, d = %dcr, e = %dci
  }
}

// -----

// Rows that begin at an odd number, where no complex number may stand, are transformed elsewhere.
// CHECK-LABEL: plan.module @odd
// CHECK: %[[X:.*]] = plan.view %{{.*}} plus 1 : memref<1x9xf32> to memref<1x8xf32, strided<[9, 1]>>
// CHECK: plan.copy(%[[X]] : memref<1x8xf32, strided<[9, 1]>>) -> (%[[ROWS:.*]] : memref<1x8xf32>)
// CHECK: plan.fft(%[[ROWS]] : memref<1x8xf32>) -> (%[[S:.*]] : memref<1x5x2xf32>)
// CHECK: %[[Y:.*]] = plan.view %{{.*}} plus 3 {{.*}}: memref<1x11xf32> to memref<1x8xf32>
// CHECK: plan.fft(%[[S]] : memref<1x5x2xf32>) -> (%[[BACK:.*]] : memref<1x8xf32>) {{{.*}}inverse{{.*}}}
// CHECK: plan.copy(%[[BACK]] : memref<1x8xf32>) -> (%[[Y]] : memref<1x8xf32>)
hydra.model @odd version 1 {
  hydra.entry @y(%x: [1, 9] f32, %z: [1, 3] f32) {
    %part = hydra.slice %x axis = 1 start = 1 size = 8
    %s = hydra.rfft %part
    %back = hydra.irfft %s real_ends
    %y = hydra.concat %z, %back axis = 1
    hydra.return y = %y
  }
}

// -----

// Scales of blocks of 128 rows lie with every row of them at a multiple of 16 bytes; those of single rows do as they are made.
// CHECK-LABEL: plan.module @blocks
// CHECK: %[[ROOM:.*]] = plan.buffer transient {{.*}}: memref<2x4xf32>
// CHECK: %[[PLACE:.*]] = plan.view %[[ROOM]] plus 0 {{.*}}memref<2x4xf32> to memref<2x3xf32, strided<[4, 1]>>
// CHECK: plan.copy(%{{.*}} : memref<2x3xf32>) -> (%[[PLACE]] : memref<2x3xf32, strided<[4, 1]>>)
// CHECK: plan.matmul({{.*}}scales %{{.*}} : memref<3x16xf32>, %[[PLACE]] : memref<2x3xf32, strided<[4, 1]>>)
hydra.model @blocks version 1 {
  hydra.entry @y(%x: [16, 384] f32, %w: [256, 384] f32, %s: [] f32, %sx: [3, 16] f32, %sw: [2, 3] f32) {
    %qx = hydra.quantize %x, %s format = f8E4M3FN
    %qw = hydra.quantize %w, %s format = f8E4M3FN
    %y = hydra.quantized_matmul %qx, %qw, %sx, %sw dtype = f32
    hydra.return y = %y
  }
}

// -----

// A matmul of 8-bit operands reads scales at multiples of 16 bytes: one that lies elsewhere is copied.
// CHECK-LABEL: plan.module @scales
// CHECK: %[[FIRST:.*]] = plan.view %{{.*}} plus 4 : memref<8xf32> to memref<f32>
// CHECK: %[[SECOND:.*]] = plan.view %{{.*}} plus 3 : memref<8xf32> to memref<f32>
// CHECK: plan.copy(%[[SECOND]] : memref<f32>) -> (%[[COPY:.*]] : memref<f32>)
// CHECK: plan.matmul(%{{.*}}, scales %[[FIRST]] : memref<f32>, %[[COPY]] : memref<f32>)
hydra.model @scales version 1 {
  hydra.entry @y(%x: [16, 16] f32, %w: [16, 16] f32, %scales: [8] f32) {
    %a = hydra.let reshape(slice(%scales, axis = 0, start = 4, size = 1), [])
    %b = hydra.let reshape(slice(%scales, axis = 0, start = 3, size = 1), [])
    %qx = hydra.quantize %x, %a format = f8E4M3FN
    %qw = hydra.quantize %w, %b format = f8E4M3FN
    %y = hydra.quantized_matmul %qx, %qw, %a, %b dtype = f32
    hydra.return y = %y
  }
}

// -----

// What is joined and read by others too is made in its place, and they read it there. Not where the whole would live for it
// that is more than three times as large.
// CHECK-LABEL: plan.module @parts
// CHECK: plan.program @shared
// CHECK: %[[ALL:.*]] = plan.buffer transient {{.*}} : memref<4x16xf32>
// CHECK: %[[PART:.*]] = plan.view %[[ALL]] plus 0 as {{.*}} : memref<4x16xf32> to memref<4x8xf32, strided<[16, 1]>>
// CHECK: plan.matmul({{.*}}) -> (%[[PART]] : memref<4x8xf32, strided<[16, 1]>>)
// CHECK-NOT: plan.copy
// CHECK: plan.matmul(%[[ALL]] : memref<4x16xf32>
// CHECK-NOT: plan.copy
// CHECK: plan.matmul(%[[PART]] : memref<4x8xf32, strided<[16, 1]>>
// CHECK: plan.program @apart
// CHECK: plan.copy(%{{.*}} : memref<4x4xf32>) -> (%{{.*}} : memref<4x4xf32, strided<[16, 1]>>)
hydra.model @parts version 1 {
  hydra.param @v [8, 8] init = normal(0.02)
  hydra.param @w [8, 8] init = normal(0.02)
  hydra.param @narrow [4, 8] init = normal(0.02)
  hydra.param @wide [12, 8] init = normal(0.02)
  hydra.param @of_all [4, 16] init = normal(0.02)
  hydra.param @of_narrow [8, 4] init = normal(0.02)
  hydra.entry @shared(%x: [4, 8] f32) {
    %v, %w, %u = hydra.let @v, @w, @of_all
    %a = hydra.linear %x, %v
    %b = hydra.linear %x, %w
    %c = hydra.concat %a, %b axis = 1
    %d = hydra.linear %c, %u
    %e = hydra.linear %a, %w
    hydra.return d = %d, e = %e
  }
  hydra.entry @apart(%x: [4, 8] f32) {
    %v, %w, %u, %t = hydra.let @narrow, @wide, @of_all, @of_narrow
    %a = hydra.linear %x, %v
    %b = hydra.linear %x, %w
    %c = hydra.concat %a, %b axis = 1
    %d = hydra.linear %c, %u
    %e = hydra.linear %a, %t
    hydra.return d = %d, e = %e
  }
}

// -----

// So are numbers of rows, which a kernel stores with any strides.
// CHECK-LABEL: plan.module @row_values
// CHECK: plan.buffer transient {{.*}} : memref<4x16xf32>
// CHECK-NOT: plan.copy
// CHECK: plan.launch @{{.*}}write %{{.*}} : memref<4x8xf32, strided<[16, 1]>>, write %{{.*}} : memref<4x8xf32, strided<[16, 1]>>)
// CHECK-NOT: plan.copy
// CHECK: plan.output
hydra.model @row_values version 1 {
  hydra.entry @sums(%x: [4, 8, 3] f32) {
    %squares = hydra.mul %x, %x
    %a = hydra.sum %x axes = [2]
    %b = hydra.sum %squares axes = [2]
    %c = hydra.concat %a, %b axis = 1
    hydra.return c = %c
  }
}

// -----

// What is copied as it lies transposed, for a matmul, is made so, and what is padded between its zeros, whoever else reads it there.
// A second copy is no other. Values that are returned, mostly padding, and rows of few bytes are made apart.
// CHECK-LABEL: plan.module @moves
// CHECK: plan.program @transposed
// CHECK: %[[WHOLE:.*]] = plan.buffer transient {{.*}} : memref<2x4x3x16xf32>
// CHECK: %[[PART:.*]] = plan.view %[[WHOLE]] plus 0 {{.*}} to memref<2x3x4x16xf32, strided<[192, 16, 48, 1]>>
// CHECK: plan.launch @mul_{{.*}}, write %[[PART]] :
// CHECK-NOT: plan.copy
// CHECK: plan.program @padded
// CHECK: %[[WHOLE:.*]] = plan.buffer transient {{.*}} : memref<2x9x8xf32>
// CHECK: %[[PART:.*]] = plan.view %[[WHOLE]] plus 24 {{.*}} to memref<2x6x8xf32, strided<[72, 8, 1]>>
// CHECK: plan.launch @mul_{{.*}}, write %[[PART]] :
// CHECK: plan.fill
// CHECK-NOT: plan.copy
// CHECK: plan.program @apart
// CHECK-COUNT-3: plan.copy
hydra.model @moves version 1 {
  hydra.entry @transposed(%x: [2, 3, 4, 16] f32, %w: [5, 48] f32, %u: [8, 7] f32) {
    %y = hydra.mul %x, %x
    %t = hydra.transpose %y order = [0, 2, 1, 3]
    %rows = hydra.reshape %t shape = [2, 4, 48]
    %a = hydra.linear %rows, %w
    %flat = hydra.reshape %t shape = [8, 48]
    %b = hydra.matmul %flat, %u transpose_a
    %sum = hydra.reduce_max %y axes = [3]
    hydra.return a = %a, b = %b, sum = %sum
  }
  hydra.entry @padded(%x: [2, 6, 8] f32) {
    %y = hydra.mul %x, %x
    %p = hydra.pad %y axis = 1 before = 3 after = 0
    %a = hydra.slice %p axis = 1 start = 0 size = 6
    %b = hydra.slice %p axis = 1 start = 2 size = 6
    %sum = hydra.reduce_max %y axes = [2]
    %most = hydra.reduce_max %a axes = [2]
    %least = hydra.reduce_max %b axes = [2]
    hydra.return sum = %sum, most = %most, least = %least
  }
  hydra.entry @apart(%x: [2, 3, 4, 16] f32, %w: [5, 48] f32, %z: [2, 6, 8] f32, %few: [3, 4, 2] f32, %v: [5, 6] f32) {
    %y = hydra.mul %x, %x
    %t = hydra.transpose %y order = [0, 2, 1, 3]
    %rows = hydra.reshape %t shape = [2, 4, 48]
    %a = hydra.linear %rows, %w
    %z2 = hydra.mul %z, %z
    %p = hydra.pad %z2 axis = 1 before = 6 after = 0
    %b = hydra.reduce_max %p axes = [2]
    %few2 = hydra.mul %few, %few
    %ft = hydra.transpose %few2 order = [1, 0, 2]
    %frows = hydra.reshape %ft shape = [4, 6]
    %c = hydra.linear %frows, %v
    hydra.return y = %y, a = %a, b = %b, c = %c
  }
}

// -----

// Matmuls whose batch a library multiplies in one call are made as they lie together, and moved then: in their places among others
// it would need a call for every two of them. Where an operand lies like that, it does anyway.
// CHECK-LABEL: plan.module @batches
// CHECK: plan.program @together
// CHECK: plan.matmul({{.*}}) -> (%{{.*}} : memref<6x2x4x16xf32>)
// CHECK: plan.copy
// CHECK: plan.program @apart
// CHECK: plan.matmul({{.*}}) -> (%{{.*}} : memref<6x2x4x16xf32, strided<[128, 16, 32, 1]>>)
// CHECK-NOT: plan.copy
hydra.model @batches version 1 {
  hydra.entry @together(%a: [6, 2, 4, 5] f32, %b: [6, 2, 5, 16] f32, %w: [7, 32] f32) {
    %o = hydra.matmul %a, %b
    %t = hydra.transpose %o order = [0, 2, 1, 3]
    %rows = hydra.reshape %t shape = [6, 4, 32]
    %y = hydra.linear %rows, %w
    hydra.return y = %y
  }
  hydra.entry @apart(%a: [6, 2, 4, 5] f32, %x: [6, 5, 2, 16] f32, %w: [7, 32] f32) {
    %b = hydra.transpose %x order = [0, 2, 1, 3]
    %o = hydra.matmul %a, %b
    %t = hydra.transpose %o order = [0, 2, 1, 3]
    %rows = hydra.reshape %t shape = [6, 4, 32]
    %y = hydra.linear %rows, %w
    hydra.return y = %y
  }
}

// -----

// Pairs of neighbours are rotated where they lie, beside what nothing rotates: the rest of that buffer
// lives as long anyway.
// CHECK-LABEL: plan.module @neighbours
// CHECK: %[[B:.*]] = plan.buffer transient {{.*}} : memref<16x24xf32>
// CHECK: %[[P:.*]] = plan.view %[[B]] plus 0 : memref<16x24xf32> to memref<2x8x2x8xf32, strided<[192, 24, 8, 1]>>
// CHECK: %[[R:.*]] = plan.view %[[P]] plus 0 as {{.*}} : memref<2x8x2x8xf32, strided<[192, 24, 8, 1]>> to memref<2x8x2x8xf32, strided<[192, 24, 8, 1]>>
// CHECK: plan.launch @{{.*}}(read %[[P]] : {{.*}}, write %[[R]] : {{.*}})
hydra.model @neighbours version 1 {
  hydra.param @w [24, 8] init = ones
  hydra.entry @y(%x: [16, 8] f32) {
    %w = hydra.use @w
    %a = hydra.linear %x, %w
    %b = hydra.reshape %a shape = [2, 8, 24]
    %qk0 = hydra.slice %b axis = 2 start = 0 size = 16
    %v0 = hydra.slice %b axis = 2 start = 16 size = 8
    %qk1 = hydra.reshape %qk0 shape = [2, 8, 2, 8]
    %qk = hydra.rope %qk1 base = 1.0e4
    %q = hydra.slice %qk axis = 2 start = 0 size = 1
    %k = hydra.slice %qk axis = 2 start = 1 size = 1
    %v = hydra.reshape %v0 shape = [2, 8, 1, 8]
    %o = hydra.attention %q, %k, %v scale = 0.5 causal
    hydra.return y = %o
  }
}

// -----

// Halves of a head are read by others than the threads that store them; and what somebody reads later
// stays as it is.
// CHECK-LABEL: plan.module @halves
// CHECK-COUNT-2: plan.buffer transient {{.*}} : memref<2x8x1x8xf32>{{$}}
// CHECK-LABEL: plan.module @later
// CHECK-COUNT-2: plan.buffer transient {{.*}} : memref<2x8x1x8xf32>{{$}}
// What comes several times has no place for each.
// CHECK-LABEL: plan.module @repeated
// CHECK-COUNT-2: plan.buffer transient {{.*}} : memref<2x8x2x8xf32>{{$}}
// What is made of two values has a buffer of its own, with its rows side by side.
// CHECK-LABEL: plan.module @both
// CHECK: plan.buffer transient {{.*}} : memref<2x8x8xf32>{{$}}
hydra.model @halves version 1 {
  hydra.param @w [24, 8] init = ones
  hydra.entry @y(%x: [16, 8] f32) {
    %w = hydra.use @w
    %a = hydra.linear %x, %w
    %b = hydra.reshape %a shape = [2, 8, 24]
    %q0 = hydra.slice %b axis = 2 start = 0 size = 8
    %v0 = hydra.slice %b axis = 2 start = 16 size = 8
    %q1 = hydra.reshape %q0 shape = [2, 8, 1, 8]
    %q = hydra.rope %q1 base = 1.0e4 half_split
    %v = hydra.reshape %v0 shape = [2, 8, 1, 8]
    %o = hydra.attention %q, %q, %v scale = 0.5 causal
    hydra.return y = %o
  }
}

// -----

hydra.model @later version 1 {
  hydra.param @w [24, 8] init = ones
  hydra.entry @y(%x: [16, 8] f32) {
    %w = hydra.use @w
    %a = hydra.linear %x, %w
    %b = hydra.reshape %a shape = [2, 8, 24]
    %q0 = hydra.slice %b axis = 2 start = 0 size = 8
    %v0 = hydra.slice %b axis = 2 start = 4 size = 8
    %q1 = hydra.reshape %q0 shape = [2, 8, 1, 8]
    %q = hydra.rope %q1 base = 1.0e4
    %v = hydra.reshape %v0 shape = [2, 8, 1, 8]
    %o = hydra.attention %q, %q, %v scale = 0.5 causal
    hydra.return y = %o
  }
}

// -----

hydra.model @repeated version 1 {
  hydra.param @w [16, 8] init = ones
  hydra.entry @y(%x: [16, 8] f32) {
    %w = hydra.use @w
    %a = hydra.linear %x, %w
    %b = hydra.reshape %a shape = [2, 8, 16]
    %q0 = hydra.slice %b axis = 2 start = 0 size = 8
    %v0 = hydra.slice %b axis = 2 start = 8 size = 8
    %q1 = hydra.reshape %q0 shape = [2, 8, 1, 8]
    %q2 = hydra.broadcast %q1 shape = [2, 8, 2, 8]
    %q = hydra.rope %q2 base = 1.0e4
    %v1 = hydra.reshape %v0 shape = [2, 8, 1, 8]
    %o = hydra.attention %q, %v1, %v1 scale = 0.5 causal
    hydra.return y = %o
  }
}

// -----

hydra.model @both version 1 {
  hydra.param @w [16, 8] init = ones
  hydra.entry @y(%x: [16, 8] f32) {
    %w = hydra.use @w
    %a = hydra.linear %x, %w
    %b = hydra.reshape %a shape = [2, 8, 16]
    %q0 = hydra.slice %b axis = 2 start = 0 size = 8
    %v0 = hydra.slice %b axis = 2 start = 8 size = 8
    %z = hydra.reshape %x shape = [2, 8, 8]
    %q1 = hydra.add %q0, %z
    %q = hydra.reshape %q1 shape = [2, 8, 1, 8]
    %v = hydra.reshape %v0 shape = [2, 8, 1, 8]
    %o = hydra.attention %q, %q, %v scale = 0.5 causal
    hydra.return y = %o
  }
}
