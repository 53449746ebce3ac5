// Rows of which some numbers are NaN, their largest ones, and the rows sorted by them.
hydra.model @chosen version 1 {
  hydra.entry @loss(%x: [B, S] f32) dims(B, S) {
    %nothing = hydra.let %x - %x
    %u = hydra.let select(%x > 0.5, %nothing / %nothing, %x)
    %chosen = hydra.top_k %u k = 2
    %index, %group, %place, %offsets = hydra.route %chosen k = 2
    %mask = hydra.let reshape(%chosen, [B * S])
    %rows, %where, %count = hydra.compact %mask
    %largest = hydra.cast %chosen to = f32
    hydra.return largest = %largest, index = %index, group = %group, place = %place, offsets = %offsets, rows = %rows
  }
}
