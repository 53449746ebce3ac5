// What a program that reads on says of the next token.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Results that programs which read on have beside the scores.
inline constexpr llvm::StringLiteral kBestResult = "best", kTopResult = "top";

/// Of a program that returns scores [B, C, V] of all tokens of a call and updates nothing: it
/// returns those of the last token alone, `[B, 1, V]`, and beside them `best [B]`, the id with the
/// highest (of equal ones the first; V where one is no number), and `top [B]`, that score, both in
/// f32: all that greedy decoding asks for. Of 2^24 classes or more, which f32 cannot number, the
/// scores alone.
void returnNextToken(EntryOp entry);

} // namespace hydra
