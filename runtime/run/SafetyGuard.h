// A run whose programs have safe forms: tries both, and the forms without one optimization if there
// are such; watches steps, and gives up what is not as it should be.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/ranks/Ranks.h"
#include "runtime/run/Executor.h"
#include "runtime/run/LineFile.h"
#include "runtime/run/RunLog.h"
#include "runtime/run/SafetyMonitor.h"
#include "runtime/run/Session.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// What a run is told about its guard.
struct SafetySetup {
  int64_t window = 100;          // steps that are watched
  bool countsThroughput = false; // whether slow steps count as anomalies
  bool safeForm = false;         // the safe form from the first step on, and nothing to guard
  std::optional<std::filesystem::path> pretests = {};   // JSON lines, one for each pretest
  std::optional<std::filesystem::path> checkpoint = {}; // where the run goes on
};

/// Of plan and device, in 12 hexadecimal digits: what is known of one is not of another.
std::string safetyConfiguration(const PlanFile &file, const Executor &executor);

/// In which form a run that is in this state goes on. Throws Error where the plan has no such.
ProgramForm formToRun(const std::optional<SafetyState> &state, const std::string &configuration,
                      const planfile::Plan &plan);

/// On several ranks each has a guard, all make the same calls, and what rank 0 has seen counts.
class SafetyGuard {
public:
  /// For a session with safe forms, which it outlives as little as the log. `say`: prints a line or
  /// more. Throws Error when the file of pretests cannot be opened.
  SafetyGuard(const PlanFile &file, Executor &executor, Session &session, const SafetySetup &setup,
              Ranks *ranks, RunLog &log, std::function<void(const std::string &)> say);

  /// Before the first step: goes on in the state of the checkpoint, or tries both forms on the
  /// batches of the next step, which changes nothing, and says what runs. Throws Error when they
  /// cannot be read.
  void begin();
  /// Behind a step: the next one may be of the safe form.
  void watch(const StepReport &report);
  /// Whether steps are watched still, so that this may be.
  bool watches() const { return monitor.watches(); }
  /// At the end of the run.
  void finish() const;

private:
  std::string pretest();
  std::string pretestAlone(const std::string &problem);
  void record(const std::string &problem, double milliseconds);
  void tellPretest(const std::string &problem) const;
  void tell() const;
  bool leads() const { return !ranks || ranks->leads(); }

  /// What trying a form has shown.
  struct Form {
    Session::Trial trial;  ///< the last one
    double seconds = 0;    ///< of the fastest
    uint64_t bytes = 0;    ///< of the arena, that its programs use
    std::string problem{}; ///< of any
  };
  Form tryForm(ProgramForm form, int steps);
  Form tryOrFail(ProgramForm form, int steps);

  /// What trying the plan without one optimization has shown of that.
  struct Alone {
    std::string name;
    Form without;
    std::string status, message; ///< as the record has them
    double milliseconds = 0;     ///< that it took
  };
  void judge(Alone &alone, const std::string &problem) const;
  std::string resultText(const Alone &alone) const;

  const PlanFile &file;
  Executor &executor;
  Session &session;
  const SafetySetup setup;
  Ranks *const ranks;
  RunLog &log;
  const std::function<void(const std::string &)> say;
  LineFile pretests;
  SafetyMonitor monitor;
  Form fast, safe;
  std::vector<Alone> alone; ///< in the order of the plan; empty: none was tried
};

} // namespace hydra::runtime
