// Processors that code is generated for: levels of the x86-64 psABI.
#pragma once

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace hydra::cpu {

struct CpuTarget {
  std::string level;     ///< x86-64-v3 or x86-64-v4
  std::string tune;      ///< processor whose timings are assumed, as LLVM names it; no other effect
  bool optimised = true; ///< whether LLVM improves the code

  /// `host` (the highest level of this machine, tuned for it), x86-64-v3 or x86-64-v4.
  static llvm::Expected<CpuTarget> get(llvm::StringRef name);

  /// The features that the level needs, as /proc/cpuinfo spells them.
  std::vector<std::string> features() const;
};

} // namespace hydra::cpu
