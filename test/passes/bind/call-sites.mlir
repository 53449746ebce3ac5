// RUN: hydra-opt %s --hydra-bind="call-sites" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: hydra-opt %s --hydra-bind --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=NONE

// What a definition computes has its own place, then those of the calls through which it came: for editors.
// NONE-NOT: callsite
// CHECK-LABEL: hydra.entry @y
hydra.model @m version 1 {
  hydra.stack @layers[2] {
    hydra.param @w [4] init = ones
  }
  hydra.def @half(%x) = %x * 0.5
  hydra.def @quarter(%x) = @half(@half(%x))
  hydra.entry @y(%x: [3, 4] f32) {
    // CHECK: hydra.mul %x, {{.*}}"quarter.half"{{.*}}[callsite(callsite("{{.*}}":[[#@LINE - 3]]:28 at "{{.*}}":[[#@LINE - 2]]:34) at "{{.*}}":[[#@LINE + 2]]:24)])
    // CHECK: hydra.mul {{.*}}"quarter.half"{{.*}}[callsite(callsite("{{.*}}":[[#@LINE - 4]]:28 at "{{.*}}":[[#@LINE - 3]]:28) at "{{.*}}":[[#@LINE + 1]]:24)])
    %start = hydra.let @quarter(%x)
    %end = hydra.for @layers carry(%h = %start) {
      // CHECK: hydra.mul %arg0, {{.*}}"half"{{.*}}[callsite("{{.*}}":[[#@LINE - 7]]:28 at "{{.*}}":[[#@LINE + 1]]:25)])
      %next = hydra.let @half(%h) * @w
      hydra.yield %next
    }
    hydra.return y = %end
  }
}
