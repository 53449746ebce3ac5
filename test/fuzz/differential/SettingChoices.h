// Which choices a setting has: by the target, by the program, and by what else it says.
#pragma once

#include "test/fuzz/differential/Setting.h"

namespace hydra::test {

/// Passes of the setting's pipeline that can be left out, each once.
std::vector<std::string> optionalPasses(const Setting &setting);

/// Meshes that the batch can be dealt out to.
std::vector<std::string> meshesOf(const SettingRange &range);

/// Whether code for the target can be made here; where plans are to run it can.
bool canHaveCode(const SettingRange &range);

/// Over how many of their axes ranks can share out.
std::vector<int64_t> levelsOf(const std::string &mesh, llvm::StringRef shard);

/// Operands of the oracle are the model's own: where that matters, what makes other matmuls of them
/// is left out, and what makes a history is not.
void keepOperands(Setting &setting);

/// Whether the target multiplies integers by rows in the precision.
bool multipliesInt8(const Setting &setting);

/// What it can join depends on what exact passes in front of it have left.
constexpr const char *kJoinGradients = "hydra-join-weight-gradients";

} // namespace hydra::test
