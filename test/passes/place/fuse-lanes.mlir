// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "gpu", backend = "cuda", architecture = "sm_90a", multiprocessors = 132, block_shared = 232448, multiprocessor_shared = 232448, rates = {graph_launch_seconds = 2.2e-6, loop_step_seconds = 5.0e-7, block_flops = 5.0e11, block_bandwidth = 1.5e11}>}' --hydra-form-fusions --hydra-assign-layouts --hydra-to-plan --hydra-fuse-loops --hydra-expand-kernels | FileCheck %s

// Where iterations lie side by side and lanes far apart, four iterations share an access; those that go backward find the
// last one first.
// CHECK-DAG: plan.kernel @lanes_{{[0-9]+}} {{.*}}if (ahead % 4 == 0) loadFour(x[[X:[0-9]+]]s + ahead, &v[[X]][int64((first + ahead)) * 1]);{{.*}}x[[Y:[0-9]+]]f[ahead % 4] = x[[Y]];{{.*}}if (ahead % 4 == 3) storeFour(&v[[Y]][int64((first + ahead - 3)) * 1], x[[Y]]f);
// CHECK-DAG: plan.kernel @lanes_{{[0-9]+}} {{.*}}loadFour(four, &v[[U:[0-9]+]][int64((first + ahead + 3)) * -1]);{{.*}}x[[U]]s[ahead + j] = four[3 - j];{{.*}}x[[V:[0-9]+]]f[3 - ahead % 4] = x[[V]];{{.*}}if (ahead % 4 == 3) storeFour(&v[[V]][int64((first + ahead)) * -1], x[[V]]f);
// Not so where the iterations are no multiple of four.
// CHECK-DAG: plan.kernel @lanes_{{[0-9]+}} {{.*}}first += 18{{.*}}s[ahead] = widen(v{{[0-9]+}}[int64((first + ahead)) * 1]);
hydra.model @m version 1 bound {symbols = {}} {
  hydra.entry @forward(%chunk0: tensor<24x1xf32>, %carried0: tensor<24x1xf32>) scan <16 over [1] carried 1 stacked [1]> {
    %turned = hydra.mul %carried0, %chunk0 : tensor<24x1xf32>, tensor<24x1xf32>
    %next = hydra.add %turned, %chunk0 : tensor<24x1xf32>, tensor<24x1xf32>
    hydra.return joined0 = %next, carried0 = %next : tensor<24x1xf32>, tensor<24x1xf32>
  }
  hydra.entry @backward(%chunk0: tensor<24x1xf32>, %carried0: tensor<24x1xf32>) scan <16 over [1] carried 1 stacked [1] reverse true> {
    %turned = hydra.mul %carried0, %chunk0 : tensor<24x1xf32>, tensor<24x1xf32>
    %next = hydra.add %turned, %chunk0 : tensor<24x1xf32>, tensor<24x1xf32>
    hydra.return joined0 = %next, carried0 = %next : tensor<24x1xf32>, tensor<24x1xf32>
  }
  hydra.entry @odd(%chunk0: tensor<24x1xf32>, %carried0: tensor<24x1xf32>) scan <18 over [1] carried 1 stacked [1]> {
    %turned = hydra.mul %carried0, %chunk0 : tensor<24x1xf32>, tensor<24x1xf32>
    %next = hydra.add %turned, %chunk0 : tensor<24x1xf32>, tensor<24x1xf32>
    hydra.return joined0 = %next, carried0 = %next : tensor<24x1xf32>, tensor<24x1xf32>
  }
  hydra.entry @e(%x: tensor<24x16xf32>, %start: tensor<24x1xf32>) {
    %all, %end = hydra.loop @forward(%x, %start) : (tensor<24x16xf32>, tensor<24x1xf32>) -> (tensor<24x16xf32>, tensor<24x1xf32>)
    hydra.return all = %all, end = %end : tensor<24x16xf32>, tensor<24x1xf32>
  }
  hydra.entry @f(%x: tensor<24x16xf32>, %start: tensor<24x1xf32>) {
    %all, %end = hydra.loop @backward(%x, %start) : (tensor<24x16xf32>, tensor<24x1xf32>) -> (tensor<24x16xf32>, tensor<24x1xf32>)
    hydra.return all = %all, end = %end : tensor<24x16xf32>, tensor<24x1xf32>
  }
  hydra.entry @g(%x: tensor<24x18xf32>, %start: tensor<24x1xf32>) {
    %all, %end = hydra.loop @odd(%x, %start) : (tensor<24x18xf32>, tensor<24x1xf32>) -> (tensor<24x18xf32>, tensor<24x1xf32>)
    hydra.return all = %all, end = %end : tensor<24x18xf32>, tensor<24x1xf32>
  }
}
