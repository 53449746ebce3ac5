// A program through hydrac's pipeline to a plan, and the plan on the executor of its target.
#pragma once

#include "test/fuzz/differential/Oracle.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hydra::test {

/// A plan file, or why there is none.
struct Candidate {
  std::vector<std::byte> plan;
  std::string refusal;
  std::string complaint; ///< a diagnostic in spite of which there is a plan
  std::string broken;    ///< of watched passes: what one of them has left that is no right program
};

/// Compiles as hydrac does with these flags. Kernels that this process has compiled before are not
/// compiled again: it compiles many plans. `watched`: looks at the program behind every pass, which
/// must verify, and lose nothing that results depend on (DataFlow.h).
Candidate compileCandidate(Compiler &compiler, const Case &source, const Setting &setting,
                           bool watched = false);

/// The programs as they are in front of placement, where every rounding of the plan is an
/// operation; null where they cannot be made.
mlir::OwningOpRef<mlir::ModuleOp> groupedModule(Compiler &compiler, const Case &source,
                                                const Setting &setting);

/// Results of the work as Oracle has them, one for each of so many runs of the whole work on one
/// executor, whose memory begins as NaN. Throws support::Error where the plan is refused.
std::vector<TensorMap> runCandidate(const std::vector<std::byte> &plan, const Setting &setting,
                                    const Work &work, unsigned repetitions);

/// The same once, in two runs: the second one begins, on an executor of its own, with what a
/// checkpoint has behind the first step of training.
TensorMap runResumed(const std::vector<std::byte> &plan, const Setting &setting, const Work &work);

} // namespace hydra::test
