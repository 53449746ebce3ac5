// hydra-differential: programs compiled and run in every way, held against the oracle.
#include "test/fuzz/differential/Workers.h"

#include "runtime/support/Error.h"
#include "tools/common/ParseArguments.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

using namespace hydra;
using namespace hydra::test;
using support::fail;

namespace {

constexpr const char *kOverview =
    "Compiles and runs programs in many ways and compares every result with the oracle.\n\n"
    "  hydra-differential run --kind=all --seeds=0..1000 --keep=findings\n"
    "  hydra-differential check findings/scan-17.mlir\n"
    "  hydra-differential check model.mlir --batch=2 --seq=8 --setting='--mode=grad -O0'\n\n"
    "Exit status 1 when anything was wrong, refused by the executor, crashed or hung.";

/// What of the command line both commands share.
struct Common {
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  double timeout = 60.0;
  std::string target = "cpu";

  void add(CLI::App &app) {
    app.add_option("--jobs", jobs, "processes (default: one for each processor)")
        ->check(CLI::PositiveNumber);
    app.add_option("--timeout", timeout, "seconds for one setting of one program (default: 60)")
        ->check(CLI::PositiveNumber);
    app.add_option("--target", target,
                   "what hydrac compiles for: cpu, or a GPU that this machine has: h200, rtx5090 "
                   "(default: cpu)");
  }

  WorkerOptions workers() const {
    WorkerOptions options;
    options.processes = jobs;
    options.limit = std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000));
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
    if (target == "cpu")
      options.memory = uint64_t{16} << 30; // a driver reserves far more
#endif
    return options;
  }
};

/// The case of each job and its settings, in the process that checks them.
class CaseRunner : public JobRunner {
public:
  void begin() override {
    compiler = std::make_unique<Compiler>();
    mlir::DialectRegistry registry;
    registerDialects(registry);
    compiler->context.appendDialectRegistry(registry);
  }

  uint32_t parts(uint64_t job) override {
    if (!current || currentJob != job) {
      checker.reset();
      current.emplace(makeJob(job));
      settings = settingsOf(job, *current);
      checker = std::make_unique<Checker>(*compiler, *current);
      currentJob = job;
    }
    return static_cast<uint32_t>(settings.size());
  }

  Verdict run(uint64_t job, uint32_t part) override {
    parts(job);
    return checker->check(settings[part]);
  }

  virtual Case makeJob(uint64_t job) const = 0;
  virtual std::vector<Setting> settingsOf(uint64_t job, const Case &source) const = 0;

private:
  std::unique_ptr<Compiler> compiler;
  std::optional<Case> current;
  uint64_t currentJob = 0;
  std::vector<Setting> settings;
  std::unique_ptr<Checker> checker;
};

/// Counts, and prints what is no success.
class Summary {
public:
  void take(const Case &source, const Setting &setting, const Verdict &verdict) {
    ++counts[verdict.outcome];
    if (isFinding(verdict.outcome)) {
      std::printf("%s: %s [%s]: %s\n", nameOf(verdict.outcome), source.name.c_str(),
                  setting.text().c_str(), verdict.detail.c_str());
      std::fflush(stdout);
    } else if (verdict.outcome == Outcome::RefusedByCompiler ||
               verdict.outcome == Outcome::RefusedByOracle) {
      Reason &reason = reasons[{verdict.outcome, reasonOf(verdict.detail)}];
      if (reason.count++ == 0)
        reason.example = fmt::format("{} [{}]", source.name, setting.text());
    }
  }

  /// Returns the exit status.
  int print(uint64_t programs) const {
    std::vector<std::pair<uint64_t, std::string>> lines;
    for (const auto &[key, reason] : reasons)
      lines.emplace_back(reason.count, fmt::format("{:6} {}: {}  ({})", reason.count,
                                                   nameOf(key.first), key.second, reason.example));
    std::sort(lines.rbegin(), lines.rend());
    for (const auto &[count, line] : lines)
      std::printf("%s\n", line.c_str());
    uint64_t settings = 0, findings = 0;
    for (const auto &[outcome, count] : counts) {
      settings += count;
      findings += isFinding(outcome) ? count : 0;
    }
    const auto count = [&](Outcome outcome) {
      auto it = counts.find(outcome);
      return it == counts.end() ? 0 : it->second;
    };
    std::printf("%s\n",
                fmt::format("{} programs, {} settings, {} wrong, {} refused by executor, {} "
                            "crashes, {} hangs, {} ill-conditioned, {} refused by compiler, {} no "
                            "programs",
                            programs, settings, count(Outcome::Wrong),
                            count(Outcome::RefusedByExecutor), count(Outcome::Crashed),
                            count(Outcome::Hung), count(Outcome::IllConditioned),
                            count(Outcome::RefusedByCompiler), count(Outcome::RefusedByOracle))
                    .c_str());
    return findings > 0 ? 1 : 0;
  }

private:
  struct Reason {
    uint64_t count = 0;
    std::string example;
  };

  std::map<Outcome, uint64_t> counts;
  std::map<std::pair<Outcome, std::string>, Reason> reasons;
};

//===-- run -----------------------------------------------------------------------------------===//

class RunCommand final : public CaseRunner {
public:
  void add(CLI::App &app) {
    command = app.add_subcommand("run", "random programs under random settings");
    command->add_option("--kind", kind,
                        "of programs: " + fmt::format("{}", fmt::join(caseKinds(), ", ")) +
                            ", or all (default: all)");
    command->add_option("--seeds", seeds, "FIRST..LAST, both included, or one (default: 0..99)");
    command->add_option("--settings", count, "for each program (default: 2)")
        ->check(CLI::PositiveNumber);
    command->add_option("--keep", keep, "folder for the programs of findings (default: none)");
    command->add_option("--seconds", seconds, "begin no program after so long (default: all)")
        ->check(CLI::PositiveNumber);
    common.add(*command);
  }
  bool chosen() const { return command->parsed(); }

  int main() {
    readSeeds();
    Target::named(common.target);
    if (kind == "all")
      kinds = caseKinds();
    else
      kinds = {kind};
    makeJob(0);
    if (!keep.empty())
      std::filesystem::create_directories(keep);
    WorkerOptions options = common.workers();
    options.total = std::chrono::seconds(seconds);
    const uint64_t jobs = (last - first + 1) * kinds.size();
    const uint64_t done = runJobs(*this, 0, jobs, options, [&](const Report &report) {
      const Case source = makeJob(report.job);
      const std::vector<Setting> settings = settingsOf(report.job, source);
      const Setting &setting = settings[std::min<size_t>(report.part, settings.size() - 1)];
      summary.take(source, setting, report.verdict);
      if (isFinding(report.verdict.outcome) && !keep.empty())
        save(report.job, source, setting, report.verdict);
    });
    return summary.print(done);
  }

  Case makeJob(uint64_t job) const override {
    return makeCase(kinds[job % kinds.size()], first + job / kinds.size());
  }

  std::vector<Setting> settingsOf(uint64_t, const Case &source) const override {
    SettingRange range;
    range.target = common.target;
    range.modes = source.modes();
    return drawSettings(source.seed, count, range);
  }

private:
  void readSeeds() {
    auto [low, high] = llvm::StringRef(seeds).split("..");
    if (low.getAsInteger(10, first) ||
        (high.empty() ? (last = first, seeds.find("..") != std::string::npos)
                      : high.getAsInteger(10, last)) ||
        last < first)
      fail("--seeds is '{}'; expected FIRST..LAST, such as 0..999", seeds);
  }

  void save(uint64_t job, const Case &source, const Setting &setting, const Verdict &verdict) {
    std::string &header = headers[job];
    header += fmt::format("// {} under {}: {}\n", nameOf(verdict.outcome), setting.text(),
                          verdict.detail);
    std::string name = source.name;
    std::replace(name.begin(), name.end(), ' ', '-');
    std::ofstream file(std::filesystem::path(keep) / (name + ".mlir"));
    file << "// flags: " << source.flags() << '\n' << header << source.source.text;
    if (!file.flush())
      fail("cannot write to {}", keep);
  }

  CLI::App *command = nullptr;
  Common common;
  std::string kind = "all", seeds = "0..99", keep;
  unsigned count = 2;
  uint64_t first = 0, last = 0, seconds = 0;
  std::vector<std::string> kinds;
  std::map<uint64_t, std::string> headers; ///< of kept files, by job
  Summary summary;
};

//===-- check ---------------------------------------------------------------------------------===//

/// Binding, seed and settings of files, from flags or from the files' own first lines.
struct FileOptions {
  BindingOptions binding;
  uint64_t seed = 1;
  std::vector<std::string> settings;
  std::string mode;

  void add(CLI::App &app) {
    app.add_option("--preset", binding.preset, "of the model");
    app.add_option("--set", binding.settings, "NAME=VALUE: gives a symbol a value")->delimiter(',');
    app.add_option("--batch", binding.batch, "value of the entry dimension B")
        ->check(CLI::PositiveNumber);
    app.add_option("--seq", binding.seq, "value of the entry dimension S")
        ->check(CLI::PositiveNumber);
    app.add_option("--seed", seed, "of the values (default: 1)");
  }

  /// What the line `// flags: …` of a text says, beneath what is given.
  void addFromText(const std::string &text) {
    constexpr llvm::StringLiteral kMark = "// flags:";
    for (llvm::StringRef rest = text; rest.starts_with("//"); rest = rest.split('\n').second) {
      llvm::StringRef line = rest.split('\n').first;
      if (!line.consume_front(kMark))
        continue;
      FileOptions own;
      CLI::App app;
      app.set_help_flag();
      own.add(app);
      try {
        app.parse(line.str());
      } catch (const CLI::ParseError &error) {
        fail("'{}{}': {}", kMark.str(), line.str(), error.what());
      }
      const FileOptions plain;
      if (binding.preset.empty())
        binding.preset = own.binding.preset;
      if (binding.settings.empty())
        binding.settings = own.binding.settings;
      if (binding.batch == 0)
        binding.batch = own.binding.batch;
      if (binding.seq == 0)
        binding.seq = own.binding.seq;
      if (seed == plain.seed)
        seed = own.seed;
      return;
    }
  }
};

Case readFile(const std::string &path, FileOptions options) {
  Case source = readCase(path, {}, 0);
  options.addFromText(source.source.text);
  source.source.binding = options.binding;
  source.seed = options.seed;
  return source;
}

class CheckCommand final : public CaseRunner {
public:
  void add(CLI::App &app) {
    command = app.add_subcommand("check", "model files under all settings, or some");
    command
        ->add_option("files", files,
                     "models; a line `// flags: --batch=…` at the beginning of "
                     "one says how it is bound")
        ->required();
    command->add_option("--mode", mode, "only settings of this mode: forward, grad or train")
        ->check(CLI::IsMember({"forward", "grad", "train"}));
    command->add_option("--setting", settings,
                        "a setting: flags of hydrac, and --threads; repeatable (default: all)");
    command->add_flag("--verbose", verbose, "a line for every setting");
    options.add(*command);
    common.add(*command);
  }
  bool chosen() const { return command->parsed(); }

  int main() {
    SettingRange range;
    range.target = common.target;
    Target::named(range.target);
    if (!mode.empty())
      range.modes = {Setting::parse("--mode=" + mode).mode};
    for (const std::string &text : settings)
      chosenSettings.push_back(Setting::parse(text));
    if (settings.empty())
      chosenSettings = allSettings(range);
    for (const std::string &file : files)
      cases.push_back(readFile(file, options));
    const uint64_t done =
        runJobs(*this, 0, cases.size(), common.workers(), [&](const Report &report) {
          const Setting &setting = chosenSettings[report.part];
          if (verbose || !settings.empty())
            std::printf("%-24s %s [%s]\n", nameOf(report.verdict.outcome),
                        cases[report.job].name.c_str(), setting.text().c_str());
          summary.take(cases[report.job], setting, report.verdict);
        });
    return summary.print(done);
  }

  Case makeJob(uint64_t job) const override { return cases[job]; }
  std::vector<Setting> settingsOf(uint64_t, const Case &) const override { return chosenSettings; }

private:
  CLI::App *command = nullptr;
  Common common;
  FileOptions options;
  std::vector<std::string> files, settings;
  std::string mode;
  bool verbose = false;
  std::vector<Case> cases;
  std::vector<Setting> chosenSettings;
  Summary summary;
};

} // namespace

int main(int argc, char **argv) {
  CLI::App app(kOverview);
  app.require_subcommand(1);
  RunCommand run;
  CheckCommand check;
  run.add(app);
  check.add(app);
  if (const std::optional<int> status = parseArguments(app, argc, argv, "hydra-differential"))
    return *status;
  try {
    return run.chosen() ? run.main() : check.main();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hydra-differential: %s\n", error.what());
    return 1;
  }
}
