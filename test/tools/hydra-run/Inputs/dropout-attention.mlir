// Attention of every form, of which training drops keys and weights.
hydra.model @attentions version 1 {
  hydra.symbols dims(D = 24, V = 256) reals(part = 0.0, keys = 0.0)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  hydra.param @table [V, D] init = normal(0.5)
  hydra.param @wq [D, D] init = normal(0.3)
  hydra.param @wk [12, D] init = normal(0.3)
  hydra.param @wv [20, D] init = normal(0.3)
  hydra.param @wo [D, 40] init = normal(0.2)
  hydra.param @head [V, D] init = normal(0.3)
  hydra.def @trunk(%tokens) {
    %x = hydra.let embedding(%tokens, @table)
    %q, %k, %v = hydra.let reshape(linear(%x, @wq), [B, S, 4, 6]), reshape(linear(%x, @wk), [B, S, 2, 6]), reshape(linear(%x, @wv), [B, S, 2, 10])
    %a = hydra.let attention(%q, %k, %v, scale = 0.4, cap = 2.0, causal, dropout = part, dropkey = keys)
    %b = hydra.let attention(%q, %k, %v, scale = 0.4, causal, chunk = 5, window = 3, dropkey = keys)
    %c = hydra.let attention(%q, %k, %v, scale = 0.4, causal, window = 4, dropout = part)
    // Earlier tokens alone, but of fewer keys than there are queries, without a mask.
    %first_k, %first_v = hydra.let slice(%k, axis = 1, start = 0, size = 1), slice(%v, axis = 1, start = 0, size = 1)
    %d = hydra.let attention(%q, %first_k, %first_v, scale = 0.4, dropout = part, dropkey = keys)
    %y = hydra.let %x + linear(reshape(%a + %b + %c + %d, [B, S, 40]), @wo)
    hydra.yield %y
  }
  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
    %loss = hydra.let linear_cross_entropy(@trunk(%tokens), @head, %labels)
    hydra.return loss = %loss
  }
  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {
    %logits = hydra.let linear(@trunk(%tokens), @head)
    hydra.return logits = %logits
  }
}
