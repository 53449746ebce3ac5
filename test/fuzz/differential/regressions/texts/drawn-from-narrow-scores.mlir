// A token is drawn from scores in f32, whatever format the model computes them in.
// flags: --batch=2
// expects: right
hydra.model @program version 1 {
  hydra.symbols dims(D = 8, V = 19)
  hydra.param @e [V, D] init = normal(1.0)
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %x = hydra.let embedding(%tokens, @e)
    %h = hydra.let reshape(%x, [B, S, 2, 4])
    %o = hydra.attention %h, %h, %h scale = 0.5 causal
    %logits = hydra.let linear(%x + reshape(%o, [B, S, D]), @e)
    hydra.return logits = %logits
  }
}
