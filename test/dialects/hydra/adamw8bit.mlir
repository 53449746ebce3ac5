// AdamW with moments of 8 bits: its text, and what it refuses.
// RUN: hydra-opt %s --split-input-file --verify-diagnostics | hydra-opt --split-input-file | FileCheck %s

// CHECK: hydra.state @w.m8 [2, 64] f8E4M3FN init = zeros of @w as moment
// CHECK: hydra.adamw8bit %p, %w.m8, %s, %w.m8, %s, %g, %lr, %t, %lr beta1 = {{.*}} wd = {{.*}} : tensor<2x64xf32>, tensor<2x64xf8E4M3FN>, tensor<2x1xf32>, tensor<2x64xf8E4M3FN>, tensor<2x1xf32>, tensor<2x64xbf16>, tensor<f32>, tensor<i32>, tensor<f32>
// CHECK: hydra.guard %{{.*}}, %m1, %w.m8 : tensor<i1>, tensor<2x64xf8E4M3FN>, tensor<2x64xf8E4M3FN>
hydra.model @m version 1 bound {} {
  hydra.param @w [2, 64] init = zeros
  hydra.state @w.m8 [2, 64] f8E4M3FN init = zeros of @w as moment
  hydra.entry @e(%p: tensor<2x64xf32>, %s: tensor<2x1xf32>, %g: tensor<2x64xbf16>, %lr: tensor<f32>, %t: tensor<i32>) {
    %m = hydra.use @w.m8 : tensor<2x64xf8E4M3FN>
    %p1, %m1, %s1, %r1, %q1 = hydra.adamw8bit %p, %m, %s, %m, %s, %g, %lr, %t, %lr beta1 = 0.9 beta2 = 0.95 eps = 1.0e-8 wd = 0.1 lr_scale = 1.0 : tensor<2x64xf32>, tensor<2x64xf8E4M3FN>, tensor<2x1xf32>, tensor<2x64xf8E4M3FN>, tensor<2x1xf32>, tensor<2x64xbf16>, tensor<f32>, tensor<i32>, tensor<f32>
    %ok = hydra.compare %lr, %lr is = "lt" : tensor<f32>, tensor<f32>
    %k = hydra.guard %ok, %m1, %m : tensor<i1>, tensor<2x64xf8E4M3FN>, tensor<2x64xf8E4M3FN>
    hydra.return p = %p1 updates(@w.m8 = %k) : tensor<2x64xf32>, tensor<2x64xf8E4M3FN>
  }
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{has elements of 'f8E4M3FN'; expected f32, bf16, f16 or i32}}
  hydra.state @s [2, 64] f8E4M3FN init = zeros
  hydra.entry @e(%x: tensor<4xf32>) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<2x64xf32>, %s: tensor<2x1xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw8bit: first moment has elements of another type; expected f8E4M3FN}}
    %a, %b, %c, %d, %f = hydra.adamw8bit %p, %p, %s, %p, %s, %p, %lr, %t beta1 = 0.9 beta2 = 0.95 eps = 1.0e-8 wd = 0.1 lr_scale = 1.0 : tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x1xf32>, tensor<2x64xf32>, tensor<2x1xf32>, tensor<2x64xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [2, 64] init = zeros
  hydra.state @w.m8 [2, 64] f8E4M3FN init = zeros of @w as moment
  hydra.entry @e(%p: tensor<2x64xf32>, %s: tensor<2xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
    %m = hydra.use @w.m8 : tensor<2x64xf8E4M3FN>
    // expected-error@+1 {{hydra.adamw8bit: first moment scale is [2]; expected [2, 1]}}
    %a, %b, %c, %d, %f = hydra.adamw8bit %p, %m, %s, %m, %s, %p, %lr, %t beta1 = 0.9 beta2 = 0.95 eps = 1.0e-8 wd = 0.1 lr_scale = 1.0 : tensor<2x64xf32>, tensor<2x64xf8E4M3FN>, tensor<2xf32>, tensor<2x64xf8E4M3FN>, tensor<2xf32>, tensor<2x64xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%p: tensor<2x512xf32>, %s: tensor<2x1xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
    // expected-error@+1 {{hydra.adamw8bit: has blocks of 512 elements; expected at most 256}}
    %a, %b, %c, %d, %f = hydra.adamw8bit %p, %p, %s, %p, %s, %p, %lr, %t beta1 = 0.9 beta2 = 0.95 eps = 1.0e-8 wd = 0.1 lr_scale = 1.0 : tensor<2x512xf32>, tensor<2x512xf32>, tensor<2x1xf32>, tensor<2x512xf32>, tensor<2x1xf32>, tensor<2x512xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [2, 64] init = zeros
  hydra.state @w.m8 [2, 64] f8E4M3FN init = zeros of @w as moment
  hydra.entry @e(%p: tensor<2x64xf32>, %s: tensor<2x1xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
    %m = hydra.use @w.m8 : tensor<2x64xf8E4M3FN>
    // expected-error@+1 {{hydra.adamw8bit: beta2 is 1; expected a number from 0 to less than 1}}
    %a, %b, %c, %d, %f = hydra.adamw8bit %p, %m, %s, %m, %s, %p, %lr, %t beta1 = 0.9 beta2 = 1.0 eps = 1.0e-8 wd = 0.1 lr_scale = 1.0 : tensor<2x64xf32>, tensor<2x64xf8E4M3FN>, tensor<2x1xf32>, tensor<2x64xf8E4M3FN>, tensor<2x1xf32>, tensor<2x64xf32>, tensor<f32>, tensor<i32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{@small: min_size is -1; expected a finite number from 0}}
  hydra.group @small adamw8bit(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1, min_size = -1.0)
}
