// RUN: hydra-opt %s --hydra-bind | FileCheck %s
// RUN: hydra-opt %s --hydra-bind | hydra-opt | FileCheck %s
// RUN: hydra-opt %s --hydra-bind="set=averages=true" | FileCheck %s --check-prefix=AVERAGES
// RUN: hydra-opt %s --hydra-bind="programs=a:loss:averages=true,b:loss set=averages=true" | FileCheck %s --check-prefix=OWN
// RUN: hydra-opt %s --hydra-bind="programs=a:loss:averages=false,b:loss set=averages=true" | FileCheck %s --check-prefix=PAUSED
// RUN: not hydra-opt %s --hydra-bind="programs=a:loss:half=true" 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not hydra-opt %s --hydra-bind="programs=a:loss:averages=maybe" 2>&1 | FileCheck %s --check-prefix=MAYBE

// Numbers of a step have defaults, which are expressions; those that the configuration does not read are gone, and
// so are new values of state that it does not have.
// CHECK-NOT: hydra.state
// CHECK: hydra.entry @loss(%x: tensor<4xf32>, %scale: tensor<f32> = 2.500000e-01)
// CHECK: hydra.return loss = %{{[a-z0-9_]+}} :
// AVERAGES: hydra.state @mean
// AVERAGES: hydra.entry @loss(%x: tensor<4xf32>, %scale: tensor<f32> = 2.500000e-01, %share: tensor<f32> = 1.000000e+00)
// AVERAGES: hydra.return loss = {{.*}} updates(@mean =
// OWN: hydra.entry @a({{.*}}, %share
// OWN: hydra.entry @b({{.*}}, %share
// A program without averages leaves them as they are.
// PAUSED: hydra.entry @a(
// PAUSED: hydra.return loss = %{{[a-z0-9_]+}} :
// PAUSED: hydra.entry @b(
// PAUSED: updates(@mean =
// SHARED: program 'a' sets 'half', on which 'factor' depends, which all programs share
// MAYBE: program 'a' chooses averages = 'maybe'; expected true or false
hydra.model @m version 1 {
  hydra.symbols dims(D = 4) flags(averages = false, half = false)
  hydra.derive factor = select(half, 0.5, 1.0)
  hydra.state @mean [] init = zeros when averages
  hydra.entry @loss(%x: [D] f32, %scale: [] f32 = factor / D, %share: [] f32 = 1.0) {
    %sum = hydra.sum %x axes = [0]
    %loss = hydra.mul %sum, %scale
    %new = hydra.when averages {
      %old = hydra.use @mean
      %part = hydra.mul %loss, %share
      %next = hydra.add %old, %part
      hydra.yield %next
    } else {
      hydra.yield %loss
    }
    hydra.return loss = %loss updates(@mean = %new)
  }
}
