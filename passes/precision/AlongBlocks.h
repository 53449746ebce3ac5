// Updates that go along blocks instead of rows.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Lets the update that makes a guarded value go along blocks: a warp then holds all of what it
/// finds a largest magnitude of, where rows would keep hundreds of threads waiting for each other,
/// or be read twice. Returns the value in blocks; as it is where it stays so.
mlir::Value alongBlocks(mlir::Value value, int64_t block);

} // namespace hydra
