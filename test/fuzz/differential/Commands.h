// What the commands of hydra-differential share: flags, processes that check cases, the summary.
#pragma once

#include "test/fuzz/differential/Workers.h"

#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hydra::test {

/// Flags of every command.
struct CommonOptions {
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  double timeout = 60.0; ///< seconds for one setting of one program
  std::string target = "cpu";
  bool compileOnly = false;

  void add(CLI::App &app);
  WorkerOptions workers() const;
  /// A setting of this target, or one that names its own, which then is that of all.
  Setting parse(const std::string &text);
  /// Throws support::Error where the target does not exist, or is not to be had here.
  void checkTarget() const;
};

/// The case of each job and its settings, in the process that checks them.
class CaseRunner : public JobRunner {
public:
  explicit CaseRunner(const CommonOptions &common) : options(common) {}
  void begin() override;
  uint32_t parts(uint64_t job) override;
  Verdict run(uint64_t job, uint32_t part) override;

  virtual Case makeJob(uint64_t job) const = 0;
  virtual std::vector<Setting> settingsOf(uint64_t job, const Case &source) const = 0;

protected:
  std::unique_ptr<Compiler> compiler;

private:
  const CommonOptions &options;
  std::optional<Case> current;
  uint64_t currentJob = 0;
  std::vector<Setting> settings;
  std::unique_ptr<Checker> checker;
};

/// Counts, and prints what is no success.
class Summary {
public:
  /// Counts a verdict. Returns whether its program is worth drawing again, which takes as long as
  /// counting many: of findings each, of other reasons not to compare the first.
  bool count(const Verdict &verdict);
  /// Prints such a program, or keeps its name for the end.
  void tell(const Case &source, const Setting &setting, const Verdict &verdict);
  /// Counts what is not as a file expects.
  void takeUnexpected() { ++unexpected; }
  /// Reasons of refusals, then the line of counts. Returns the exit status.
  int print(uint64_t programs) const;

private:
  static std::pair<Outcome, std::string> keyOf(const Verdict &verdict);

  struct Reason {
    uint64_t count = 0;
    std::string example;
  };

  std::map<Outcome, uint64_t> counts;
  uint64_t unexpected = 0;
  std::map<std::pair<Outcome, std::string>, Reason> reasons;
};

/// What binds a file, and the seed of its values: flags, or the file's own line `// flags: …`. A
/// line
/// `// expects: right` (or `refused`) says what every setting must come to.
struct FileOptions {
  BindingOptions binding;
  uint64_t seed = 1;

  void add(CLI::App &app);
  /// The case of a file. Throws support::Error.
  Case read(const std::string &path) const;
};

/// One command: declares itself, and does its work if it was given.
class Command {
public:
  virtual ~Command() = default;
  bool chosen() const { return command->parsed(); }
  /// Returns the exit status. Throws support::Error.
  virtual int main() = 0;

protected:
  CLI::App *command = nullptr;
  CommonOptions common;
};

std::unique_ptr<Command> makeRunCommand(CLI::App &app);
std::unique_ptr<Command> makeCheckCommand(CLI::App &app);
std::unique_ptr<Command> makeReduceCommand(CLI::App &app);

} // namespace hydra::test
