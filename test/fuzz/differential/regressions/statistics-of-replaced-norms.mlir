// flags: --seed=7
// expects: right
// A norm's rows are what it reads now: the norm before it may have become plain operations. And the mean
// of a vector sums it over rows, a norm of the vector along its row: they do not share it.
hydra.model @norms version 1 {
  hydra.param @x [3, 17] init = normal(1.0)
  hydra.param @v [17] init = normal(1.0)
  hydra.param @a [17] init = normal(1.0)
  hydra.param @b [17] init = normal(1.0)
  hydra.entry @loss() {
    %x = hydra.use @x
    %v = hydra.use @v
    %a = hydra.use @a
    %b = hydra.use @b
    %y1 = hydra.layer_norm %x, %a, %b eps = 0.1
    %y2 = hydra.layer_norm %x, %b, %a eps = 0.1
    %y3 = hydra.rms_norm %y2, %a eps = 0.1
    %s = hydra.mul %x, %x
    %m = hydra.mean %s axes = [1]
    %eps = hydra.constant value = 0.1
    %t = hydra.add %m, %eps
    %r = hydra.rsqrt %t
    %n = hydra.layer_norm %v, %a, %v eps = 0.1
    %mv = hydra.mean %v axes = [0]
    %mn = hydra.mean %n axes = [0]
    %l1 = hydra.mean %y1 axes = [0, 1]
    %p = hydra.mul %y3, %y2
    %l2 = hydra.mean %p axes = [0, 1]
    %l3 = hydra.mean %r axes = [0]
    %l4 = hydra.add %l1, %l2
    %l5 = hydra.add %l3, %mv
    %l6 = hydra.add %l4, %l5
    %loss = hydra.add %l6, %mn
    hydra.return loss = %loss
  }
}
