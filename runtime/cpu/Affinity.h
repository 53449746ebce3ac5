// Which processors threads run on.
#pragma once

namespace hydra::runtime {

/// Processors that the process might use when this was first asked.
unsigned usableProcessors();

/// Keeps the calling thread on one of them, number `index` of usableProcessors(). Best effort.
void bindToProcessor(unsigned index);

/// Lets the calling thread run on all of them. A thread starts with the binding of the one that
/// started it, so helpers that are started by a bound thread call this first.
void bindToAllProcessors();

} // namespace hydra::runtime
