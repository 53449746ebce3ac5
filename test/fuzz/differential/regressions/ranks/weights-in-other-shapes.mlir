// With a mesh whose ranks share out parameters, passes saw weights in other shapes, and a history of scales had its rows in
// another order.
// flags: --seed=119 --batch=2 --seq=8
// expects: right
hydra.model @hostile version 1 {
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.group @slow adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.01, lr_scale = 0.25)
  hydra.group @free adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0, lr_scale = 2.0)
  hydra.param @p1 [5, 4] init = uniform(1.0)
  hydra.param @p3 [12, 4] init = uniform(0.3)
  hydra.param @p15 [1] init = uniform(1.0) group = @slow
  hydra.param @p16 [1, 5, 2, 8] init = normal(1.0)
  hydra.param @p17 [1, 5, 2, 8] init = shuffle((index + 1) / 80.0)
  hydra.param @p18 [1, 2, 5, 8] init = zeros group = @slow
  hydra.param @p27 [5, 3] init = ones group = @slow
  hydra.entry @loss(%x0: [B, S] i32, %x21: [B, S] i32) dims(B, S) {
    %p1 = hydra.use @p1
    %v2 = hydra.embedding %x0, %p1
    %p3 = hydra.use @p3
    %v4 = hydra.linear %v2, %p3
    %v5 = hydra.slice %v4 axis = 2 start = 0 size = 6
    %v6 = hydra.reshape %v5 shape = [B, S, 2, 3]
    %v7 = hydra.slice %v4 axis = 2 start = 6 size = 3
    %v8 = hydra.reshape %v7 shape = [B, S, 1, 3]
    %v9 = hydra.slice %v4 axis = 2 start = 9 size = 3
    %v10 = hydra.reshape %v9 shape = [B, S, 1, 3]
    %v11 = hydra.attention %v6, %v8, %v10 scale = 1 / sqrt(3) cap = 3.0 causal window = 8
    %v12 = hydra.reshape %v11 shape = [B, S, 6]
    %v13 = hydra.top_k %p3 k = 2
    %v14 = hydra.cast %p3 to = f32
    %p15 = hydra.use @p15
    %p16 = hydra.use @p16
    %p17 = hydra.use @p17
    %p18 = hydra.use @p18
    %v19 = hydra.transpose %p18 order = [0, 2, 1, 3]
    %v20 = hydra.attention %p16, %p17, %v19 scale = 1.0
    %v22 = hydra.iota shape = [B, S] axis = 1 dtype = i32 positions
    %v23 = hydra.constant value = 2 shape = [] dtype = i32
    %v24 = hydra.compare %v22, %v23 is = "ge"
    %v25 = hydra.constant value = -100 dtype = i32
    %v26 = hydra.select %v24, %x21, %v25
    %p27 = hydra.use @p27
    %v28 = hydra.linear %v7, %p27
    %v29 = hydra.cross_entropy %v28, %v26
    hydra.return loss = %v29
  }
}
