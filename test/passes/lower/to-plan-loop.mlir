// RUN: hydra-opt %s --hydra-form-fusions --hydra-assign-layouts --hydra-to-plan --hydra-plan-memory | FileCheck %s

// A loop moves views of its sequences (from the last chunk to the first: `reverse`); its body writes a
// joined result to its place, and what is carried where it was, so the initial value is copied only
// because somebody reads it later.
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @body(%chunk0: tensor<2x4xf32>, %carried0: tensor<2x4xf32>) scan <8 over [0] carried 1 stacked [0] reverse true> {
    %y = hydra.mul %chunk0, %carried0 : tensor<2x4xf32>, tensor<2x4xf32>
    %next = hydra.add %carried0, %chunk0 : tensor<2x4xf32>, tensor<2x4xf32>
    hydra.return joined0 = %y, carried0 = %next : tensor<2x4xf32>, tensor<2x4xf32>
  }
  // CHECK: plan.program @e
  // CHECK: %[[X:.*]] = plan.buffer transient other at 0 : memref<16x4xf32>
  // CHECK: %[[START:.*]] = plan.buffer {{.*}} : memref<2x4xf32>
  // CHECK: %[[CHUNK:.*]] = plan.view %[[X]] plus 56 : memref<16x4xf32> to memref<2x4xf32>
  // CHECK: %[[CARRIED:.*]] = plan.buffer {{.*}} : memref<2x4xf32>
  // CHECK: plan.copy(%[[START]] : memref<2x4xf32>) -> (%[[CARRIED]] : memref<2x4xf32>)
  // CHECK: %[[ALL:.*]] = plan.buffer {{.*}} : memref<16x4xf32>
  // CHECK: %[[SLOT:.*]] = plan.view %{{.*}} plus 0 : memref<2x4xf32> to memref<2x4xf32>
  // CHECK: plan.loop 8(%[[CHUNK]] by -32 : memref<2x4xf32>, %[[SLOT]] by -32 : memref<2x4xf32>) {
  // CHECK-NEXT: plan.launch @mul_add_0(read %[[CHUNK]] : memref<2x4xf32>, read %[[CARRIED]] : memref<2x4xf32>, write %[[SLOT]] : memref<2x4xf32>, write %[[CARRIED]] : memref<2x4xf32>)
  // CHECK: }
  // CHECK: plan.output "end" = %[[CARRIED]]
  hydra.entry @e(%x: tensor<16x4xf32>, %start: tensor<2x4xf32>) {
    %all, %end = hydra.loop @body(%x, %start) : (tensor<16x4xf32>, tensor<2x4xf32>) -> (tensor<16x4xf32>, tensor<2x4xf32>)
    hydra.return all = %all, end = %end, start = %start : tensor<16x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  }

  // Groups read chunks of slices where these lie, and write joined results where a concatenation wants them.
  hydra.entry @sums(%chunk0: tensor<3x1x8xf32>, %carried0: tensor<3x1x8xf32>) scan <4 over [1] carried 1 stacked [1]> {
    %next = hydra.add %carried0, %chunk0 : tensor<3x1x8xf32>, tensor<3x1x8xf32>
    hydra.return joined0 = %carried0, carried0 = %next : tensor<3x1x8xf32>, tensor<3x1x8xf32>
  }
  // CHECK-LABEL: plan.program @strided
  // CHECK-NOT: plan.copy({{.*}}memref<3x4x8
  // CHECK: plan.loop 4(%{{.*}} by 32 : memref<3x1x8xf32, strided<[64, 8, 1]>>, %{{.*}} by 64 : memref<3x1x8xf32, strided<[64, 16, 1]>>) {
  // CHECK-NOT: plan.copy({{.*}}memref<3x4x8
  // CHECK: plan.loop 4(%{{.*}} by 32 : memref<3x1x8xf32, strided<[64, 8, 1]>>, %{{.*}} by 64 : memref<3x1x8xf32, strided<[64, 16, 1]>>) {
  // CHECK-NOT: plan.copy({{.*}}memref<3x4x8
  // CHECK: plan.output "all"
  hydra.entry @strided(%x: tensor<3x8x8xf32>, %start: tensor<3x1x8xf32>) {
    %a = hydra.slice %x axis = 1 size = 4 start = 0 : tensor<3x8x8xf32>
    %b = hydra.slice %x axis = 1 size = 4 start = 4 : tensor<3x8x8xf32>
    %y, %p = hydra.loop @sums(%a, %start) : (tensor<3x4x8xf32>, tensor<3x1x8xf32>) -> (tensor<3x4x8xf32>, tensor<3x1x8xf32>)
    %z, %q = hydra.loop @sums(%b, %start) : (tensor<3x4x8xf32>, tensor<3x1x8xf32>) -> (tensor<3x4x8xf32>, tensor<3x1x8xf32>)
    %all = hydra.concat %y, %z axis = 2 : tensor<3x4x8xf32>, tensor<3x4x8xf32>
    hydra.return all = %all : tensor<3x4x16xf32>
  }
  // What a loop reads may lie in a concatenation, but then it writes none of that: its slices would not be apart.
  // CHECK-LABEL: plan.program @beside
  // CHECK: %[[WHOLE:.*]] = plan.buffer {{.*}} : memref<3x4x16xf32>
  // CHECK: plan.launch @{{.*}}, write %{{.*}} : memref<3x4x8xf32, strided<[64, 16, 1]>>)
  // CHECK: plan.loop 4(%{{.*}} by 64 : memref<3x1x8xf32, strided<[64, 16, 1]>>, %{{.*}} by 32 : memref<3x1x8xf32, strided<[32, 8, 1]>>) {
  // CHECK: plan.copy(%{{.*}} : memref<3x4x8xf32>) -> (%{{.*}} : memref<3x4x8xf32, strided<[64, 16, 1]>>)
  // CHECK: plan.output "all"
  hydra.entry @beside(%x: tensor<3x4x8xf32>, %start: tensor<3x1x8xf32>) {
    %y = hydra.mul %x, %x : tensor<3x4x8xf32>, tensor<3x4x8xf32>
    %z, %p = hydra.loop @sums(%y, %start) : (tensor<3x4x8xf32>, tensor<3x1x8xf32>) -> (tensor<3x4x8xf32>, tensor<3x1x8xf32>)
    %all = hydra.concat %z, %y axis = 2 : tensor<3x4x8xf32>, tensor<3x4x8xf32>
    hydra.return all = %all : tensor<3x4x16xf32>
  }
}
