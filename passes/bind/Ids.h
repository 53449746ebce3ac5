// Which arguments of a program are ids: rows of tables that are looked up, or labels of losses.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Sets the `ids` of a bound entry: for each argument the end of the ids that all operations which
/// read it accept, negative for labels; 0: no ids.
void noteIds(EntryOp entry);

} // namespace hydra
