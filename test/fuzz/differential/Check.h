// Whether a program, compiled and run under a setting, computes what the oracle says.
#pragma once

#include "test/fuzz/differential/Candidate.h"

#include <map>
#include <memory>
#include <string>

namespace hydra::test {

enum class Outcome {
  Right,
  IllConditioned,    ///< not comparable: rounding moves it by more than a hundredth
  RefusedByOracle,   ///< no model, or one that has no derivative or update
  RefusedByCompiler, ///< in one line
  Wrong,             ///< a value, or bits that must be the same
  RefusedByExecutor, ///< after the compiler wrote the plan
  Crashed,           ///< a signal, an exception, an error of a sanitizer, or no word why
  Hung,
};

/// One word or two, for reports: `wrong`, `refused by the executor`.
const char *nameOf(Outcome outcome);
/// Whether it is a defect.
bool isFinding(Outcome outcome);

struct Verdict {
  Outcome outcome = Outcome::Right;
  std::string detail;    ///< in one line; empty for Right
  double severity = 0.0; ///< Wrong: the error, of the largest element of its tensor; 1 for bits
};

/// The first line of what is no defect of the program: numbers and names left out, so that equal
/// reasons are equal texts.
std::string reasonOf(const std::string &detail);

/// Checks of one case under several settings; what they have in common is computed once.
class Checker {
public:
  Checker(Compiler &compiler, const Case &source) : compiler(compiler), source(source) {}

  /// Compiles, runs twice on one executor, and compares with the oracle, the second run with the
  /// first, and with earlier settings of which Setting::bitsKey says that bits are the same.
  Verdict check(const Setting &setting);
  /// Compiles only, and checks passes and plan as far as nothing needs to run: for targets that
  /// this machine does not have.
  Verdict checkPlan(const Setting &setting);

private:
  /// Runs a plan with values that the oracle refuses: an executor may compute with them, or refuse
  /// them for the same reason.
  static Verdict checkRefusal(const Oracle &oracle, const Setting &setting,
                              const std::vector<std::byte> &plan);
  Verdict compare(const Oracle &oracle, const Setting &setting, const TensorMap &found) const;

  Compiler &compiler;
  const Case &source;
  std::map<std::string, std::unique_ptr<Oracle>> oracles; ///< by oracle key
  struct Earlier {
    Setting setting;
    TensorMap results;
  };
  std::map<std::string, Earlier> earlier; ///< by key of bits
};

} // namespace hydra::test
