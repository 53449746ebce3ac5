// What a preset says of training, for flags that are left out.
#pragma once

#include "tools/hydrac/Options.h"

#include <string>

namespace hydra {

/// Gives flags that are left out what the preset of `--preset` has for them, as far as `--mode` has
/// a use for it: `--mode=train` for all, others for the batch and its sequences, `--mode=generate`,
/// which reads no batches, for none. Of a model that cannot be read, or lacks the preset, nothing
/// is taken; what is wrong is said when it is compiled. Returns what was taken, as flags, such as
/// `preset 'small' sets --batch=8 --lr=0.0003`; nothing for none.
std::string takePresetSettings(HydracOptions &options);

} // namespace hydra
