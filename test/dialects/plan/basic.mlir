// RUN: hydra-opt %s | hydra-opt | FileCheck %s

// Every operation of the dialect survives print and parse: a program with a loop inside a switch
// inside a loop, two streams and an event.
// CHECK-LABEL: plan.module @all
plan.module @all {
  // CHECK: plan.buffer persistent "param" : memref<16xf32>
  %w = plan.buffer persistent "param" : memref<16xf32>
  // CHECK: plan.variable param "w" = %{{.*}} init <normal(2.000000e-02)> group "default" : memref<16xf32>
  plan.variable param "w" = %w init <normal(2.0e-2)> group "default" : memref<16xf32>
  %lr = plan.buffer persistent "other" : memref<f32>
  // CHECK: plan.scalar "lr" = %{{.*}} constant 1.000000e-03 : memref<f32>
  plan.scalar "lr" = %lr constant 1.0e-3 : memref<f32>
  // CHECK: plan.kernel @add rows 4 grain 1 [memref<16xf32>, memref<16xf32>]
  plan.kernel @add rows 4 grain 1 [memref<16xf32>, memref<16xf32>] {
  }
  // CHECK: plan.program @train streams 2
  plan.program @train streams 2 {
    %x = plan.buffer transient "act.norm" : memref<4x16xf32>
    %which = plan.buffer transient "other" : memref<i32>
    // CHECK: plan.input "x" = %{{.*}} values 0 : memref<4x16xf32>
    plan.input "x" = %x values 0 : memref<4x16xf32>
    // CHECK: plan.view %{{.*}} plus 0 : memref<4x16xf32> to memref<16xf32>
    %row = plan.view %x plus 0 : memref<4x16xf32> to memref<16xf32>
    // CHECK: plan.loop 4(%{{.*}} by 64 : memref<16xf32>) {
    plan.loop 4 (%row by 64 : memref<16xf32>) {
      // CHECK: plan.switch %{{.*}} : memref<i32> {
      plan.switch %which : memref<i32> {
        // CHECK: plan.launch @add(read %{{.*}} : memref<16xf32>, update %{{.*}} : memref<16xf32>)
        plan.launch @add(read %w : memref<16xf32>, update %row : memref<16xf32>) {label = "add"}
      }, {
        %t = plan.buffer transient "workspace" : memref<16xf32>
        // CHECK: plan.call "copy"(read %{{.*}} : memref<16xf32>, write %{{.*}} : memref<16xf32>) {}
        plan.call "copy"(read %row : memref<16xf32>, write %t : memref<16xf32>) {} {label = "copy"}
        plan.call "copy"(read %t : memref<16xf32>, write %row : memref<16xf32>) {} {label = "copy"}
      } 
    } {signals = 0 : i64}
    // CHECK: {label = "fill", stream = 1 : i64, waits = array<i64: 0>}
    plan.call "fill"(write %x : memref<4x16xf32>) {value = 1.0} {label = "fill", stream = 1 : i64, waits = array<i64: 0>}
    // CHECK: plan.output "x" = %{{.*}} : memref<4x16xf32>
    plan.output "x" = %x : memref<4x16xf32>
  }
}
