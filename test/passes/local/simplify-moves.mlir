// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-simplify-moves | FileCheck %s

// Rows one and two later are padding around views of the rows, and nothing is moved twice.
// CHECK-LABEL: hydra.entry @taps
// CHECK-DAG: %[[S1:.*]] = hydra.slice %x axis = 1 size = 5 start = 0
// CHECK-DAG: %[[L1:.*]] = hydra.pad %[[S1]] after = 0 axis = 1 before = 1
// CHECK-DAG: %[[S2:.*]] = hydra.slice %{{.*}} axis = 1 size = 4 start = 0
// CHECK-DAG: %[[L2:.*]] = hydra.pad %[[S2]] after = 0 axis = 1 before = 2
// CHECK: hydra.concat %[[L2]], %[[L1]], %x axis = 2
// Nor backwards.
// CHECK: %[[A:.*]] = hydra.slice %x axis = 1 size = 5 start = 1
// CHECK: hydra.pad %[[A]] after = 1 axis = 1 before = 0
// CHECK-NOT: hydra.slice
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @taps(%x: [2, 6, 4] f32) {
    %p1 = hydra.pad %x axis = 1 before = 1 after = 0
    %later = hydra.slice %p1 axis = 1 start = 0 size = 6
    %p2 = hydra.pad %later axis = 1 before = 1 after = 0
    %later2 = hydra.slice %p2 axis = 1 start = 0 size = 6
    %y = hydra.concat %later2, %later, %x axis = 2
    %p3 = hydra.pad %x axis = 1 before = 0 after = 1
    %earlier = hydra.slice %p3 axis = 1 start = 1 size = 6
    hydra.return y = %y, earlier = %earlier
  }
}

// -----

// Parts of padding: what lies inside of the rows is a view of them, what lies outside zeros, and another axis comes
// first. What others read padded anyway stays a view of that.
// CHECK-LABEL: hydra.entry @parts
// CHECK-DAG: %[[IN:.*]] = hydra.slice %x axis = 0 size = 2 start = 1
// CHECK-DAG: %[[OUT:.*]] = hydra.constant dtype = f32 shape = [2, 4] value = 0.0
// CHECK-DAG: %[[PAD:.*]] = hydra.pad %x after = 3 axis = 0 before = 3
// CHECK-DAG: %[[EDGE:.*]] = hydra.slice %[[PAD]] axis = 0 size = 4 start = 1
// CHECK-DAG: %[[COLUMNS:.*]] = hydra.slice %x axis = 1 size = 2 start = 1
// CHECK-DAG: %[[WIDE:.*]] = hydra.pad %[[COLUMNS]] after = 1 axis = 0 before = 0
// CHECK: hydra.return in = %[[IN]], out = %[[OUT]], edge = %[[EDGE]], all = %[[PAD]], wide = %[[WIDE]]
hydra.model @m version 1 {
  hydra.entry @parts(%x: [4, 4] f32) {
    %p = hydra.pad %x axis = 0 before = 3 after = 3
    %in = hydra.slice %p axis = 0 start = 4 size = 2
    %out = hydra.slice %p axis = 0 start = 8 size = 2
    %edge = hydra.slice %p axis = 0 start = 1 size = 4
    %q = hydra.pad %x axis = 0 before = 0 after = 1
    %wide = hydra.slice %q axis = 1 start = 1 size = 2
    hydra.return in = %in, out = %out, edge = %edge, all = %p, wide = %wide
  }
}

// -----

// Exponents of powers, the same for all channels and all terms: no group has rows that are channels and terms. Where the
// repeated dimensions are rows, groups repeat; and of what is no index the broadcast stays.
// CHECK-LABEL: hydra.entry @powers
// CHECK-DAG: %[[I:.*]] = hydra.iota axis = 1 dtype = f32 shape = [3, 5, 4]
// CHECK-DAG: %[[ONE:.*]] = hydra.constant dtype = f32 shape = [3, 5, 4] value = 1.0
// CHECK: %[[J:.*]] = hydra.add %[[I]], %[[ONE]] : tensor<3x5x4xf32>
// CHECK: hydra.mul %x, %[[J]]
// CHECK: hydra.broadcast {{.*}} : tensor<5x4xf32>
// CHECK: hydra.broadcast %z
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @powers(%x: [3, 5, 4] f32, %z: [1, 5, 1] f32) {
    %i = hydra.iota shape = [1, 5, 1] axis = 1 dtype = f32
    %one = hydra.constant value = 1 shape = [1, 5, 1]
    %j = hydra.add %i, %one
    %powers = hydra.broadcast %j shape = [3, 5, 4]
    %y = hydra.mul %x, %powers
    %row = hydra.iota shape = [5, 4] axis = 0 dtype = f32
    %rows = hydra.broadcast %row shape = [3, 5, 4]
    %y1 = hydra.add %y, %rows
    %zs = hydra.broadcast %z shape = [3, 5, 4]
    %y2 = hydra.add %y1, %zs
    hydra.return y = %y2
  }
}

// -----

// The derivative of taps: rows scaled by each weight and shifted. They are padded once, and each shift is a view of
// that. Rows that are padded alone stay scaled first, and so do those whose scale is not the same for all rows.
// CHECK-LABEL: hydra.entry @derivative
// CHECK: %[[PAD:.*]] = hydra.pad %x after = 2 axis = 1 before = 1
// CHECK-COUNT-2: hydra.slice %[[PAD]] axis = 1 size = 8
// CHECK-NOT: hydra.pad
// CHECK: hydra.entry @apart
// CHECK: %[[B:.*]] = hydra.broadcast %w
// CHECK: %[[X0:.*]] = hydra.mul %x, %[[B]]
// CHECK: %[[X1:.*]] = hydra.mul %x, %y
// CHECK: hydra.pad %[[X0]] after = 0 axis = 1 before = 1
// CHECK: hydra.pad %[[X1]] after = 1 axis = 0 before = 1
hydra.model @m version 1 {
  hydra.entry @derivative(%x: [2, 6, 4] f32, %w0: [4] f32, %w1: [4] f32) {
    %b0 = hydra.broadcast %w0 shape = [2, 6, 4]
    %b1 = hydra.broadcast %w1 shape = [2, 6, 4]
    %x0 = hydra.mul %x, %b0
    %x1 = hydra.mul %b1, %x
    %p0 = hydra.pad %x0 axis = 1 before = 1 after = 1
    %p1 = hydra.pad %x1 axis = 1 before = 0 after = 2
    %sum = hydra.add %p0, %p1
    hydra.return sum = %sum
  }
  hydra.entry @apart(%x: [2, 6, 4] f32, %w: [4] f32, %y: [2, 6, 4] f32) {
    %b = hydra.broadcast %w shape = [2, 6, 4]
    %x0 = hydra.mul %x, %b
    %x1 = hydra.mul %x, %y
    %p0 = hydra.pad %x0 axis = 1 before = 1 after = 0
    %p1 = hydra.pad %x1 axis = 0 before = 1 after = 1
    hydra.return p0 = %p0, p1 = %p1
  }
}

// -----

// Few slices between other dimensions are added, also where they were transposed to be summed, in the order of the
// lanes that would. Sums over rows, along
// rows and of many slices stay.
// CHECK-LABEL: hydra.entry @slices
// CHECK: %[[A:.*]] = hydra.slice %x axis = 1 size = 1 start = 0
// CHECK: %[[B:.*]] = hydra.slice %x axis = 1 size = 1 start = 1
// CHECK: %[[C:.*]] = hydra.slice %x axis = 1 size = 1 start = 2
// CHECK: %[[AC:.*]] = hydra.add %[[A]], %[[C]]
// CHECK: hydra.add %[[AC]], %[[B]]
// CHECK-NOT: hydra.sum
// CHECK: hydra.entry @others
// CHECK-COUNT-3: hydra.sum
hydra.model @m version 1 {
  hydra.entry @slices(%x: [2, 3, 64] f32) {
    %t = hydra.transpose %x order = [0, 2, 1]
    %sum = hydra.sum %t axes = [2]
    hydra.return sum = %sum
  }
  hydra.entry @others(%x: [2, 3, 64] f32, %many: [2, 9, 64] f32) {
    %rows = hydra.sum %x axes = [0]
    %row = hydra.sum %x axes = [2]
    %all = hydra.sum %many axes = [1]
    hydra.return rows = %rows, row = %row, all = %all
  }
}

// -----

// Shifts of one value are padded once however many there are, also where slices of what was padded are read; and of arithmetic of
// which only a part is read, only that is computed: what is repeated or constant is so for fewer elements.
// CHECK-LABEL: hydra.entry @shifts
// CHECK: %[[PAD:.*]] = hydra.pad %x after = 3 axis = 1 before = 3
// CHECK-NOT: hydra.pad
// CHECK: hydra.entry @part
// CHECK: %[[X:.*]] = hydra.slice %x axis = 1 size = 4 start = 2
// CHECK: %[[B:.*]] = hydra.broadcast %w shape = [2, 4, 4]
// CHECK: %[[Y:.*]] = hydra.mul %[[X]], %[[B]]
// CHECK: %[[ONE:.*]] = hydra.constant {{.*}} : tensor<2x4x4xf32>
// CHECK: hydra.add %[[Y]], %[[ONE]]
// CHECK: hydra.entry @both
// CHECK: %[[ALL:.*]] = hydra.mul %x, %x
// CHECK: hydra.slice %[[ALL]]
// CHECK: hydra.slice %[[ALL]]
hydra.model @m version 1 {
  hydra.entry @shifts(%x: [2, 6, 4] f32, %y: [2, 9, 4] f32) {
    %p0 = hydra.pad %x axis = 1 before = 3 after = 0
    %p1 = hydra.pad %x axis = 1 before = 2 after = 1
    %p2 = hydra.pad %x axis = 1 before = 1 after = 2
    %p3 = hydra.pad %x axis = 1 before = 0 after = 3
    %a = hydra.mul %p0, %y
    %b = hydra.mul %p1, %a
    %c = hydra.add %p2, %b
    %d = hydra.mul %p3, %c
    hydra.return sum = %d
  }
  hydra.entry @part(%x: [2, 6, 4] f32, %w: [4] f32) {
    %b = hydra.broadcast %w shape = [2, 6, 4]
    %y = hydra.mul %x, %b
    %one = hydra.constant value = 1 shape = [2, 6, 4]
    %z = hydra.add %y, %one
    %part = hydra.slice %z axis = 1 start = 2 size = 4
    hydra.return part = %part
  }
  hydra.entry @both(%x: [2, 6, 4] f32) {
    %y = hydra.mul %x, %x
    %a = hydra.slice %y axis = 1 start = 0 size = 3
    %b = hydra.slice %y axis = 1 start = 3 size = 3
    hydra.return a = %a, b = %b
  }
}

// -----

// However long a chain is, all of it is computed for the slice.
// CHECK-LABEL: hydra.entry @chain
// CHECK-NEXT: hydra.slice %x axis = 1 size = 4 start = 2 : tensor<2x9x4xf32>
// CHECK-NOT: tensor<{{.*}}x9x4xf32>
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @chain(%x: [2, 9, 4] f32) {
    %y0 = hydra.tanh %x
    %y1 = hydra.tanh %y0
    %y2 = hydra.tanh %y1
    %y3 = hydra.tanh %y2
    %y4 = hydra.tanh %y3
    %y5 = hydra.tanh %y4
    %y6 = hydra.tanh %y5
    %y7 = hydra.tanh %y6
    %y8 = hydra.tanh %y7
    %y9 = hydra.tanh %y8
    %y10 = hydra.tanh %y9
    %y11 = hydra.tanh %y10
    %y12 = hydra.tanh %y11
    %y13 = hydra.tanh %y12
    %y14 = hydra.tanh %y13
    %y15 = hydra.tanh %y14
    %y16 = hydra.tanh %y15
    %y17 = hydra.tanh %y16
    %y18 = hydra.tanh %y17
    %y19 = hydra.tanh %y18
    %y20 = hydra.tanh %y19
    %y21 = hydra.tanh %y20
    %y22 = hydra.tanh %y21
    %y23 = hydra.tanh %y22
    %part = hydra.slice %y23 axis = 1 start = 2 size = 4
    hydra.return part = %part
  }
}

// -----

// Shifts and arithmetic in turns, each of which lets the next one be simpler: however many rounds that takes.
// CHECK-LABEL: hydra.entry @shifted
// CHECK: %[[PART:.*]] = hydra.slice %x0 axis = 1 size = 3 start = 0
// CHECK-NEXT: hydra.tanh %[[PART]]
// CHECK-NOT: hydra.pad
// CHECK: hydra.return
hydra.model @m version 1 {
  hydra.entry @shifted(%x0: [2, 6, 4] f32) {
    %m0 = hydra.tanh %x0
    %x1 = hydra.pad %m0 axis = 1 before = 1 after = 0
    %m1 = hydra.tanh %x1
    %x2 = hydra.pad %m1 axis = 1 before = 1 after = 0
    %m2 = hydra.tanh %x2
    %x3 = hydra.pad %m2 axis = 1 before = 1 after = 0
    %m3 = hydra.tanh %x3
    %x4 = hydra.pad %m3 axis = 1 before = 1 after = 0
    %m4 = hydra.tanh %x4
    %x5 = hydra.pad %m4 axis = 1 before = 1 after = 0
    %m5 = hydra.tanh %x5
    %x6 = hydra.pad %m5 axis = 1 before = 1 after = 0
    %m6 = hydra.tanh %x6
    %x7 = hydra.pad %m6 axis = 1 before = 1 after = 0
    %m7 = hydra.tanh %x7
    %x8 = hydra.pad %m7 axis = 1 before = 1 after = 0
    %m8 = hydra.tanh %x8
    %x9 = hydra.pad %m8 axis = 1 before = 1 after = 0
    %m9 = hydra.tanh %x9
    %x10 = hydra.pad %m9 axis = 1 before = 1 after = 0
    %m10 = hydra.tanh %x10
    %x11 = hydra.pad %m10 axis = 1 before = 1 after = 0
    %m11 = hydra.tanh %x11
    %x12 = hydra.pad %m11 axis = 1 before = 1 after = 0
    %y = hydra.tanh %x12
    %z = hydra.slice %y axis = 1 start = 12 size = 3
    hydra.return z = %z
  }
}
