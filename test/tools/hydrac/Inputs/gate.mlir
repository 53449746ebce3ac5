// A feed-forward part for the tokens whose score is above zero; the scores are an input.
hydra.model @gate version 1 {
  hydra.symbols dims(D = 24, F = 64)
  hydra.param @up [F, D] init = normal(0.2)
  hydra.param @down [D, F] init = normal(0.2)
  hydra.entry @loss(%x: [B, S, D] f32, %score: [B, S] f32) dims(B, S) {
    %zero = hydra.constant value = 0
    %kept = hydra.compare %score, %zero is = "gt"
    %mask = hydra.reshape %kept shape = [B * S]
    %rows = hydra.reshape %x shape = [B * S, D]
    %index, %place, %count = hydra.compact %mask
    %some = hydra.take_rows %rows, %index, %place
    %up = hydra.use @up
    %down = hydra.use @down
    %h = hydra.linear %some, %up
    %a = hydra.silu %h
    %y0 = hydra.linear %a, %down
    %y = hydra.take_rows %y0, %place, %index
    %sum = hydra.add %rows, %y
    %squares = hydra.mul %sum, %sum
    %loss = hydra.mean %squares axes = [0, 1]
    hydra.return loss = %loss
  }
}
