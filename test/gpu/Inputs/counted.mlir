// Work on the tokens whose score is above zero that needs whole rows: a softmax, whose row a part of a warp has, a warp or
// a block, between matmuls of rows that do not fill their tiles. Forward: in a backward pass sums over rows would want zeros
// behind a softmax.
hydra.model @counted version 1 {
  hydra.symbols dims(D, F)
  hydra.preset @short {D = 24, F = 40}
  hydra.preset @warp  {D = 264, F = 72}
  hydra.preset @block {D = 2056, F = 136}
  hydra.param @up [F, D] init = normal(0.2)
  hydra.param @down [D, F] init = normal(0.2)
  hydra.entry @rows(%x: [B, S, D] f32, %score: [B, S] f32) dims(B, S) {
    %zero = hydra.constant value = 0
    %kept = hydra.compare %score, %zero is = "gt"
    %mask = hydra.reshape %kept shape = [B * S]
    %rows = hydra.reshape %x shape = [B * S, D]
    %index, %place, %count = hydra.compact %mask
    %some = hydra.take_rows %rows, %index, %place
    %up = hydra.use @up
    %down = hydra.use @down
    %p = hydra.softmax %some
    %h = hydra.linear %p, %up
    %a = hydra.softmax %h
    %y0 = hydra.linear %a, %down
    %y = hydra.take_rows %y0, %place, %index
    %sum = hydra.add %rows, %y
    hydra.return y = %sum
  }
}
