// The programs that are tested: of a generator by kind and seed, or a file.
#pragma once

#include "test/fuzz/differential/Setting.h"
#include "test/support/ProgramText.h"

#include <string>
#include <vector>

namespace hydra::test {

/// A model, what binds it, and the seed of the values it is given.
struct Case {
  std::string name; ///< such as `scan 17`, or the file
  BoundText source;
  uint64_t seed = 0;
  std::string expected; ///< of a file's line `// expects: …`: right or refused; empty: not said
  bool int8 = false;    ///< it is known to have weights that --weight-format=int8 holds in integers
  bool int4 = false;    ///< and that int4 does
  bool onRanks = false; ///< drawn settings are of training on several ranks

  /// The flags by which a saved text is checked again: binding and seed.
  std::string flags() const;
  /// The modes that hydrac has for it: training needs an optimizer group for every parameter, and
  /// where the loss gives state new values an entry that measures; scores of next tokens without a
  /// loss are for text.
  std::vector<Mode> modes() const;
  /// Names of parameters as they are declared, so without those of the stacks that they are in.
  std::vector<std::string> parameters() const;
  /// Of those the ones that nothing but linear layers reads, grouped or not, as their weights.
  std::vector<std::string> linearWeights() const;
  /// What settings are drawn from on a target.
  SettingRange range(const std::string &target) const;
};

/// The kinds of programs: `program`, `scan` and `training` of HostileProgram.h, `random`, `batch`:
/// of a batch that 2, 3 and 4 ranks divide, `ranks`: those of `training` with a batch of 4 or 6, on
/// ranks, `text` of RandomText.h, and `wide` of RandomTransformer.h.
const std::vector<std::string> &caseKinds();

/// The program of a kind and seed, the same on every platform. Throws support::Error for a kind
/// that does not exist.
Case makeCase(const std::string &kind, uint64_t seed);

/// A model file. Throws support::Error where it cannot be read.
Case readCase(const std::string &path, BindingOptions binding, uint64_t seed);

} // namespace hydra::test
