// RUN: hydra-opt %s --split-input-file --hydra-bind="loops-from=2" | FileCheck %s
// RUN: hydra-opt %s --split-input-file | hydra-opt --split-input-file --hydra-bind="loops-from=2" | FileCheck %s

// Arithmetic becomes the operations that it is made of, in the order of its text; parameters are read in front of it.
hydra.model @arithmetic version 1 {
  hydra.symbols dims(D = 4)
  hydra.param @w [D] init = ones
  // CHECK-LABEL: hydra.entry @e
  // CHECK-NEXT: %[[W:.*]] = hydra.use @w
  // CHECK-NEXT: %[[MEAN:.*]] = hydra.mean %x axes = [1] keep
  // CHECK-NEXT: %[[MEANS:.*]] = hydra.broadcast %[[MEAN]] shape = [3, 4]
  // CHECK-NEXT: %[[OFF:.*]] = hydra.sub %x, %[[MEANS]]
  // CHECK-NEXT: %[[TWO:.*]] = hydra.constant value = 8 : tensor<f32>
  // CHECK-NEXT: %[[TWOS:.*]] = hydra.broadcast %[[TWO]] shape = [3, 4]
  // CHECK-NEXT: %[[MUL:.*]] = hydra.mul %[[OFF]], %[[TWOS]]
  // CHECK-NEXT: %[[WS:.*]] = hydra.broadcast %[[W]] shape = [3, 4]
  // CHECK-NEXT: %[[Y:.*]] = hydra.add %[[MUL]], %[[WS]]
  // A number is of the type that it meets.
  // CHECK: %[[THREE:.*]] = hydra.constant {{.*}} : tensor<i32>
  // CHECK: %[[THREES:.*]] = hydra.broadcast %[[THREE]] shape = [3]
  // CHECK: %[[EQ:.*]] = hydra.compare %t, %[[THREES]] is = "eq"
  // CHECK: %[[Z:.*]] = hydra.select %[[EQ]], %{{.*}}, %t : tensor<3xi1>, tensor<3xi32>, tensor<3xi32>
  // CHECK: hydra.return y = %[[Y]], z = %[[Z]]
  hydra.entry @e(%x: [3, D] f32, %t: [3] i32) {
    %y = hydra.let (%x - mean(%x, 1)) * (2 * D) + @w
    %z = hydra.let select(%t == 3, -100, %t)
    hydra.return y = %y, z = %z
  }
}

// -----

// A call gives values to the parameters of a definition, as the caller means them: `layer` stays open until layers
// are unrolled, `rows` until the body of a scan is written.
hydra.model @parameters version 1 {
  hydra.symbols dims(D = 6)
  hydra.stack @layers[2] {
    hydra.param @w [D] init = ones
  }
  hydra.def @outer(%x) dims(n) = @inner(%x, n = n + 1, scale = n)
  hydra.def @inner(%x) dims(n) reals(scale = 0.5) flags(on = true) = when(on and n > 3, slice(%x, axis = 0, start = n, size = 1) * (1 / scale), %x)
  // CHECK-LABEL: hydra.entry @e
  // CHECK: hydra.slice %x axis = 0 size = 1 start = 4 : tensor<6xf32>
  // CHECK: hydra.constant value = 0.3333
  // CHECK: hydra.for @layers
  // CHECK: hydra.when layer >= 1 and layer < 3 : tensor<1xf32>
  // CHECK: hydra.slice
  // CHECK: hydra.constant value = 2 : tensor<f32>
  // CHECK: hydra.constant value = 1 : tensor<f32>
  hydra.entry @e(%x: [D] f32, %z: [3] f32) {
    %y = hydra.let @outer(%x, n = D / 2)
    %end = hydra.for @layers carry(%c = %y) {
      %p = hydra.let @pick(%c, @w, own = layer >= 1 and layer < D / 2)
      hydra.yield %p
    }
    %r = hydra.scan axis = 0 chunk = 2 over(%part = %z) {
      %s = hydra.let @times(%part, n = rows)
      hydra.yield %s
    }
    hydra.return y = %end, r = %r
  }
  hydra.def @pick(%x, %w) flags(own) = when(own, slice(%w, axis = 0, start = 0, size = 1), %x)
  hydra.def @times(%x) dims(n) = %x * n
}

// -----

// Bundles are the values that they hold: through definitions, conditions, layers, scans.
hydra.model @bundles version 1 {
  hydra.stack @layers[2] {
    hydra.param @w [1, 2] init = ones
  }
  hydra.def @next(%s, %x) = bundle(sum = %s.sum + %x, count = %s.count + 1)
  hydra.def @start() = bundle(sum = constant(value = 0, shape = [1, 2]), count = 0)
  // The body of a loop carries both; what it only reads comes last.
  // CHECK-LABEL: hydra.entry @scan_0
  // CHECK-SAME: (%chunk0: tensor<1x2xf32>, %carried0: tensor<1x2xf32>, %carried1: tensor<f32>, %kept0: tensor<1x2xf32>)
  // CHECK-SAME: over[0] carried 2 stacked[0, 0]
  // CHECK: %[[SUM:.*]] = hydra.add %carried0, %chunk0
  // CHECK: %[[COUNT:.*]] = hydra.add %carried1,
  // CHECK: %[[OUT:.*]] = hydra.mul %[[SUM]], %kept0
  // CHECK: hydra.return joined0 = %[[OUT]], joined1 = %chunk0, carried0 = %[[SUM]], carried1 = %[[COUNT]]
  // CHECK-LABEL: hydra.entry @e
  // CHECK: %[[FOR:.*]]:4 = hydra.for @layers carry(%[[S:.*]] = %{{.*}}, %[[N:.*]] = %{{.*}}) : {{.*}} {
  // CHECK: %[[NEXT:.*]] = hydra.add %[[S]],
  // CHECK: %[[WHEN:.*]]:2 = hydra.when layer == 0
  // CHECK: hydra.yield %[[NEXT]], %{{.*}}, %[[WHEN]]#0, %[[WHEN]]#1
  // CHECK: %[[LOOP:.*]]:4 = hydra.loop @scan_0(%x, %[[FOR]]#2, %[[FOR]]#3, %[[FOR]]#2)
  // CHECK: hydra.return rows = %[[FOR]]#0, joined = %[[LOOP]]#1, count = %[[LOOP]]#3
  hydra.entry @e(%x: [4, 2] f32) {
    %zero = hydra.let @start()
    %rows, %s = hydra.for @layers carry(%c = %zero) {
      %n = hydra.let @next(%c, @w)
      %p = hydra.let when(layer == 0, %n, bundle(sum = %n.sum * 2, count = %n.count))
      %row = hydra.let bundle(sum = %n.sum, last = @w)
      hydra.yield %row, %p
    }
    %all, %end = hydra.scan axis = 0 chunk = 1 over(%r = %x) carry(%c = %s) {
      %n = hydra.let @next(%c, %r)
      %out = hydra.let bundle(a = %n.sum * %s.sum, b = %r)
      hydra.yield %out, %n
    }
    %first, %joined, %count = hydra.let %rows.sum, %all.b, %end.count
    hydra.return rows = %first, joined = %joined, count = %count
  }
  // From row to row, and written out.
  // CHECK-LABEL: hydra.entry @short
  // CHECK: hydra.loop @scan_1
  // CHECK: hydra.concat
  // CHECK: hydra.add %{{.*}} : tensor<2x2xf32>, tensor<2x2xf32>
  // CHECK-NOT: bundle
  // CHECK: hydra.return
  hydra.entry @short(%x: [3, 2] f32, %z: [2, 2] f32) {
    %both = hydra.bundle a = %x, b = %x
    %sums = hydra.prefix_scan axis = 0 over(%here = %both) combine(%before) {
      %next = hydra.let bundle(a = %before.a + %here.a, b = max(%before.b, %here.b))
      hydra.yield %next
    }
    %zero = hydra.let @start()
    %pair = hydra.bundle p = %z, q = %z
    %y, %end = hydra.scan axis = 0 chunk = 2 over(%r = %pair) carry(%c = %zero) {
      %out = hydra.let bundle(v = %r.p + %r.q * rows)
      %n = hydra.let bundle(sum = %c.sum, count = %c.count + 1)
      hydra.yield %out, %n
    }
    %a, %v, %count = hydra.let %sums.a, %y.v, %end.count
    hydra.return a = %a, v = %v, count = %count
  }
}
