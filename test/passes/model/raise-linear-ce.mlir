// RUN: hydra-opt %s --split-input-file --hydra-bind --hydra-raise-linear-ce | FileCheck %s

// With the rows in another shape for the loss.
// CHECK-LABEL: hydra.entry @loss
// CHECK-NOT: hydra.linear %
// CHECK: %[[X:.*]] = hydra.reshape %x shape = [6, 4]
// CHECK: hydra.linear_cross_entropy %[[X]], %w, %labels
// CHECK-NOT: hydra.cross_entropy
hydra.model @m version 1 {
  hydra.param @w [7, 4] init = ones
  hydra.entry @loss(%x: [2, 3, 4] f32, %labels: [6] i32) {
    %w = hydra.use @w
    %z = hydra.linear %x, %w
    %rows = hydra.reshape %z shape = [6, 7]
    %loss = hydra.cross_entropy %rows, %labels
    hydra.return loss = %loss
  }
}

// -----

// A matmul with the weight transposed is the same.
// CHECK-LABEL: hydra.entry @loss
// CHECK: hydra.linear_cross_entropy %x, %w, %labels
hydra.model @m version 1 {
  hydra.param @w [7, 4] init = ones
  hydra.entry @loss(%x: [6, 4] f32, %labels: [6] i32) {
    %w = hydra.use @w
    %z = hydra.matmul %x, %w transpose_b
    %loss = hydra.cross_entropy %z, %labels
    hydra.return loss = %loss
  }
}

// -----

// Not with a bias or an addend, nor where operands are to keep f32, nor when the logits are wanted themselves.
// CHECK-LABEL: hydra.entry @biased
// CHECK: hydra.cross_entropy
// CHECK-LABEL: hydra.entry @returned
// CHECK: hydra.cross_entropy
// CHECK-LABEL: hydra.entry @added
// CHECK: hydra.cross_entropy
// CHECK-LABEL: hydra.entry @precise
// CHECK: hydra.cross_entropy
hydra.model @m version 1 {
  hydra.param @w [7, 4] init = ones
  hydra.param @b [7] init = zeros
  hydra.entry @biased(%x: [6, 4] f32, %labels: [6] i32) {
    %w = hydra.use @w
    %b = hydra.use @b
    %z = hydra.linear %x, %w, %b
    %loss = hydra.cross_entropy %z, %labels
    hydra.return loss = %loss
  }
  hydra.entry @returned(%x: [6, 4] f32, %labels: [6] i32) {
    %w = hydra.use @w
    %z = hydra.linear %x, %w
    %loss = hydra.cross_entropy %z, %labels
    hydra.return loss = %loss, z = %z
  }
  hydra.entry @added(%x: [6, 4] f32, %more: [6, 7] f32, %labels: [6] i32) {
    %w = hydra.use @w
    %z = hydra.matmul %x, %w, %more transpose_b
    %loss = hydra.cross_entropy %z, %labels
    hydra.return loss = %loss
  }
  hydra.entry @precise(%x: [6, 4] f32, %labels: [6] i32) {
    %w = hydra.use @w
    %z = hydra.matmul %x, %w transpose_b full_precision
    %loss = hydra.cross_entropy %z, %labels
    hydra.return loss = %loss
  }
}
