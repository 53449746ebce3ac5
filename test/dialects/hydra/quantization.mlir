// Numbers of 8 bits: the text of their operations, and what they refuse.
// RUN: hydra-opt %s --split-input-file --verify-diagnostics | hydra-opt --split-input-file | FileCheck %s

// CHECK: hydra.quantization_scale %amax format = f8E4M3FN : tensor<f32>
// CHECK: hydra.quantize %x, %{{.*}} format = f8E4M3FN : tensor<4x8xbf16>, tensor<f32>
// CHECK: hydra.quantize %y, %{{.*}} again format = f8E5M2 : tensor<6x8xf32>, tensor<f32>
// CHECK: hydra.transpose %{{.*}} order = [1, 0] : tensor<4x8xf8E4M3FN>
// CHECK: hydra.copy %{{.*}} : tensor<8x4xf8E4M3FN>
// CHECK: hydra.slice %{{.*}} axis = 0 size = 2 start = 1 : tensor<4x8xf8E4M3FN>
// CHECK: hydra.quantized_matmul %{{.*}} dtype = bf16 : tensor<4x8xf8E4M3FN>, tensor<6x8xf8E5M2>, tensor<f32>, tensor<f32>
hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xbf16>, %y: tensor<6x8xf32>, %amax: tensor<f32>) {
    %s = hydra.quantization_scale %amax format = f8E4M3FN : tensor<f32>
    %a = hydra.quantize %x, %s format = f8E4M3FN : tensor<4x8xbf16>, tensor<f32>
    %b = hydra.quantize %y, %s format = f8E5M2 again : tensor<6x8xf32>, tensor<f32>
    %t = hydra.transpose %a order = [1, 0] : tensor<4x8xf8E4M3FN>
    %d = hydra.copy %t : tensor<8x4xf8E4M3FN>
    %r = hydra.slice %a axis = 0 size = 2 start = 1 : tensor<4x8xf8E4M3FN>
    %c = hydra.quantized_matmul %a, %b, %s, %s dtype = bf16 : tensor<4x8xf8E4M3FN>, tensor<6x8xf8E5M2>, tensor<f32>, tensor<f32>
    hydra.return c = %c : tensor<4x6xbf16>
  }
  // CHECK-LABEL: hydra.entry @rows
  // CHECK: hydra.quantize %x, %each format = f8E4M3FN : tensor<4x8xf32>, tensor<4x8xf32>
  // CHECK: hydra.quantized_matmul %{{.*}} dtype = f32 : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4xf32>, tensor<4xf32>
  hydra.entry @rows(%x: tensor<4x8xf32>, %each: tensor<4x8xf32>, %s: tensor<4xf32>) {
    %a = hydra.quantize %x, %each format = f8E4M3FN : tensor<4x8xf32>, tensor<4x8xf32>
    %c = hydra.quantized_matmul %a, %a, %s, %s dtype = f32 : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4xf32>, tensor<4xf32>
    hydra.return c = %c : tensor<4x4xf32>
  }
  // Of 300 elements of a sum there are three blocks, of 200 rows two.
  // CHECK-LABEL: hydra.entry @blocks
  // CHECK: hydra.slice %{{.*}} axis = 1 size = 300 start = 0 : tensor<16x384xf8E4M3FN>
  // CHECK: hydra.quantized_matmul %{{.*}} dtype = f32 : tensor<16x300xf8E4M3FN>, tensor<200x300xf8E4M3FN>, tensor<3x16xf32>, tensor<2x3xf32>
  // CHECK: hydra.quantized_matmul %{{.*}} dtype = f32 : tensor<200x300xf8E4M3FN>, tensor<16x300xf8E4M3FN>, tensor<2x3xf32>, tensor<3x16xf32>
  // CHECK: hydra.quantized_matmul %{{.*}} dtype = f32 : tensor<16x300xf8E4M3FN>, tensor<200x300xf8E4M3FN>, tensor<3x16xf32>, tensor<3x200xf32>
  hydra.entry @blocks(%x: tensor<16x384xf32>, %w: tensor<200x300xf32>, %s: tensor<f32>, %sx: tensor<3x16xf32>, %sw: tensor<2x3xf32>, %each: tensor<3x200xf32>) {
    %wide = hydra.quantize %x, %s format = f8E4M3FN : tensor<16x384xf32>, tensor<f32>
    %a = hydra.slice %wide axis = 1 start = 0 size = 300 : tensor<16x384xf8E4M3FN>
    %b = hydra.quantize %w, %s format = f8E4M3FN : tensor<200x300xf32>, tensor<f32>
    %c = hydra.quantized_matmul %a, %b, %sx, %sw dtype = f32 : tensor<16x300xf8E4M3FN>, tensor<200x300xf8E4M3FN>, tensor<3x16xf32>, tensor<2x3xf32>
    %d = hydra.quantized_matmul %b, %a, %sw, %sx dtype = f32 : tensor<200x300xf8E4M3FN>, tensor<16x300xf8E4M3FN>, tensor<2x3xf32>, tensor<3x16xf32>
    %e = hydra.quantized_matmul %a, %b, %sx, %each dtype = f32 : tensor<16x300xf8E4M3FN>, tensor<200x300xf8E4M3FN>, tensor<3x16xf32>, tensor<3x200xf32>
    hydra.return c = %c, d = %d, e = %e : tensor<16x200xf32>, tensor<200x16xf32>, tensor<16x200xf32>
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %s: tensor<f32>) {
    // expected-error@+1 {{hydra.quantize: cannot quantize to this format; expected f8E4M3FN or f8E5M2}}
    %a = hydra.quantize %x, %s format = bf16 : tensor<4x8xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %s: tensor<1xf32>) {
    // expected-error@+1 {{hydra.quantize: scale is [1]; expected [4, 8]}}
    %a = hydra.quantize %x, %s format = f8E5M2 : tensor<4x8xf32>, tensor<1xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %s: tensor<f32>) {
    %a = hydra.quantize %x, %s format = f8E5M2 : tensor<4x8xf32>, tensor<f32>
    // expected-error@+1 {{hydra.add: operand 0: elements of f8E5M2; expected f32, bf16, f16, i32 or i1}}
    %b = hydra.add %a, %a : tensor<4x8xf8E5M2>, tensor<4x8xf8E5M2>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %s: tensor<f32>) {
    %a = hydra.quantize %x, %s format = f8E5M2 : tensor<4x8xf32>, tensor<f32>
    // expected-error@+1 {{hydra.quantized_matmul: multiplies f8E5M2 by f8E5M2; expected at least one of f8E4M3FN}}
    %b = hydra.quantized_matmul %a, %a, %s, %s dtype = f32 : tensor<4x8xf8E5M2>, tensor<4x8xf8E5M2>, tensor<f32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %y: tensor<4x9xf32>, %s: tensor<f32>) {
    %a = hydra.quantize %x, %s format = f8E4M3FN : tensor<4x8xf32>, tensor<f32>
    %b = hydra.quantize %y, %s format = f8E4M3FN : tensor<4x9xf32>, tensor<f32>
    // expected-error@+1 {{hydra.quantized_matmul: sums over 8 elements of [4, 8] but 9 of [4, 9]}}
    %c = hydra.quantized_matmul %a, %b, %s, %s dtype = f32 : tensor<4x8xf8E4M3FN>, tensor<4x9xf8E4M3FN>, tensor<f32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %s: tensor<f32>) {
    %a = hydra.quantize %x, %s format = f8E4M3FN : tensor<4x8xf32>, tensor<f32>
    // expected-error@+1 {{hydra.quantized_matmul: second operand has elements of another type; expected f8E4M3FN or f8E5M2}}
    %c = hydra.quantized_matmul %a, %x, %s, %s dtype = f32 : tensor<4x8xf8E4M3FN>, tensor<4x8xf32>, tensor<f32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %s: tensor<f32>) {
    %a = hydra.quantize %x, %s format = f8E4M3FN : tensor<4x8xf32>, tensor<f32>
    // expected-error@+1 {{hydra.quantized_matmul: cannot yield this element type; expected f32, bf16 or f16}}
    %c = hydra.quantized_matmul %a, %a, %s, %s dtype = i32 : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) {
    // expected-error@+1 {{hydra.linear: is quantized to one format or to another than f8E4M3FN or f8E5M2; expected two of these}}
    %c = hydra.linear %x, %w quantize = f8E4M3FN : tensor<4x8xf32>, tensor<6x8xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<2x4x8xf32>, %w: tensor<2x8x4xf32>) {
    // expected-error@+1 {{hydra.matmul: quantizes [2, 4, 8]; expected two dimensions}}
    %c = hydra.matmul %x, %w quantize_a = f8E4M3FN quantize_b = f8E4M3FN : tensor<2x4x8xf32>, tensor<2x8x4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{hydra.constant}}
    %c = hydra.constant value = 1.0 shape = [2] dtype = f8E4M3FN : tensor<2xf8E4M3FN>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<4x8xf32>, %s: tensor<f32>, %rows: tensor<4xf32>) {
    %a = hydra.quantize %x, %s format = f8E4M3FN : tensor<4x8xf32>, tensor<f32>
    // expected-error@+1 {{hydra.quantized_matmul: second scale is []; expected [4]}}
    %c = hydra.quantized_matmul %a, %a, %rows, %s dtype = f32 : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4xf32>, tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<16x300xf32>, %s: tensor<f32>, %blocks: tensor<3x16xf32>, %few: tensor<2x16xf32>) {
    %a = hydra.quantize %x, %s format = f8E4M3FN : tensor<16x300xf32>, tensor<f32>
    // expected-error@+1 {{hydra.quantized_matmul: second scale is [2, 16]; expected [3, 16]}}
    %c = hydra.quantized_matmul %a, %a, %blocks, %few dtype = f32 : tensor<16x300xf8E4M3FN>, tensor<16x300xf8E4M3FN>, tensor<3x16xf32>, tensor<2x16xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<16x300xf32>, %s: tensor<f32>, %blocks: tensor<3x16xf32>, %rows: tensor<16xf32>) {
    %a = hydra.quantize %x, %s format = f8E4M3FN : tensor<16x300xf32>, tensor<f32>
    // expected-error@+1 {{hydra.quantized_matmul: second scale is [16]; expected [3, 16]}}
    %c = hydra.quantized_matmul %a, %a, %blocks, %rows dtype = f32 : tensor<16x300xf8E4M3FN>, tensor<16x300xf8E4M3FN>, tensor<3x16xf32>, tensor<16xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e(%x: tensor<16x300xf32>, %s: tensor<f32>, %blocks: tensor<1x3xf32>) {
    %a = hydra.quantize %x, %s format = f8E4M3FN : tensor<16x300xf32>, tensor<f32>
    // expected-error@+1 {{hydra.quantized_matmul: has scales of many rows for both operands; expected at least one with scales of single rows}}
    %c = hydra.quantized_matmul %a, %a, %blocks, %blocks dtype = f32 : tensor<16x300xf8E4M3FN>, tensor<16x300xf8E4M3FN>, tensor<1x3xf32>, tensor<1x3xf32>
    hydra.return
  }
}
