// What a program that reads on says of the next token.
#pragma once

#include "passes/cache/SequenceCache.h"

namespace hydra {

/// The result that programs which read on have beside the scores, and what they are given for it
/// beside positions.
inline constexpr llvm::StringLiteral kTokenResult = "token", kSettingsArgument = "settings",
                                     kDrawArgument = "draw";

/// Of a program that returns scores [B, C, V] of all tokens of a call and updates nothing: it
/// returns those of the last token alone, `[B, 1, V]`, and beside them `token [B]` (i32), the id
/// that hydra.sample draws from them: all that generation asks for. `number` names the state of the
/// ids that sequences have, the same in all programs. Fails, with a line, where there is no such
/// operation.
llvm::LogicalResult returnNextToken(EntryOp entry, SequenceCache &cache, unsigned number);

} // namespace hydra
