// How the rows of a group are cut into grains: by its shape alone, so that bits never depend on what
// runs it.
#pragma once

#include "dialects/hydra/Target.h"
#include "runtime/support/Integers.h"

namespace hydra {

/// Rows 0 … rows-1 in grains of `grain` rows; the last may be shorter.
struct RowPartition {
  int64_t rows = 1;
  int64_t grain = 1;
  int64_t grains() const { return support::ceilDiv(rows, grain); }
};

/// By the domain alone: about 128 KiB of traffic a grain, at least 16 grains where there are rows
/// enough; at most 64 when the group sums over rows, since every grain then leaves a row of partial
/// sums. Where the target has multiprocessors only these sums are cut, into at most eight grains for
/// each.
RowPartition partitionRows(FusedOp group, TargetAttr target);

/// The rows of the kernel that adds `parts` partial sums for each of `columns` columns: one row is
/// a column.
RowPartition partitionCombine(int64_t parts, int64_t columns);

/// Whether a result of the group is a sum over its rows.
bool sumsOverRows(FusedOp group, unsigned result);

} // namespace hydra
