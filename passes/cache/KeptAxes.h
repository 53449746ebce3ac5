// What programs that read on may keep of earlier tokens, and along which dimensions of it tokens
// and sequences lie: part of hydra-cache.
#pragma once

#include "dialects/hydra/Build.h"

namespace hydra {

/// A dimension for each operation that may keep something of earlier tokens, in program order.
using KeptAxes = llvm::SmallVector<int64_t>;

/// How many tokens of each sequence a call of the program has.
int64_t tokensOf(EntryOp entry);
/// The end of a scan in straight-line code: scans do not overlap.
ScanEndOp endOf(ScanBeginOp begin);

/// The operations that may keep something of earlier tokens. In a scan over tokens, which `axes`
/// tell as far as they are known, none does.
llvm::SmallVector<mlir::Operation *> mayKeepOf(EntryOp entry, llvm::ArrayRef<int64_t> axes);

/// The dimension of tokens in what each of them keeps; -1: it keeps nothing. Reports what the
/// scores need of earlier tokens and no operation keeps.
llvm::FailureOr<KeptAxes> findAxes(EntryOp entry);
/// The dimension of the batch in what each of them keeps; of scans, of all that is carried. Reports
/// what the scores need of several sequences: those of a call have nothing to do with each other,
/// and some of them rest.
llvm::FailureOr<KeptAxes> findBatches(EntryOp entry, llvm::ArrayRef<int64_t> axes);

/// How a sequence is cut into calls changes no number of the model: reports one that is not the
/// same in a program of another number of tokens. Programs with forms of their own for some numbers
/// of tokens are not compared.
llvm::LogicalResult checkNumbers(EntryOp entry, EntryOp longest, llvm::ArrayRef<int64_t> axes);
/// Reports that the program keeps something else than another one.
llvm::LogicalResult keepsOther(EntryOp entry);

} // namespace hydra
