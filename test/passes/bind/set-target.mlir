// RUN: hydra-opt %s --hydra-set-target='target={#hydra.target<name = "toy", backend = "null", architecture = "t1", multiprocessors = 7, features = ["wide"]>}' | FileCheck %s
// RUN: not hydra-opt %s --hydra-set-target=target=7 2>&1 | FileCheck %s --check-prefix=ERROR

// CHECK: module attributes {hydra.target = #hydra.target<name = "toy", backend = "null", architecture = "t1", multiprocessors = 7, features = ["wide"]>}
// ERROR: error: hydra-set-target takes a #hydra.target, not '7'
hydra.model @m version 1 {
}
