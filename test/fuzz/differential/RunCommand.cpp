// hydra-differential run: programs of generators under drawn settings.
#include "test/fuzz/differential/Commands.h"

#include "runtime/support/Error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace hydra::test {

using support::fail;

namespace {

class RunCommand final : public Command, public CaseRunner {
public:
  explicit RunCommand(CLI::App &app) : CaseRunner(common) {
    command = app.add_subcommand("run", "random programs under random settings");
    command->add_option("--kind", kind,
                        "of programs: " + fmt::format("{}", fmt::join(caseKinds(), ", ")) +
                            ", or all (default: all)");
    command->add_option("--seeds", seeds, "FIRST..LAST, both included, or one (default: 0..99)");
    command->add_option("--settings", count, "for each program (default: 2)")
        ->check(CLI::PositiveNumber);
    command->add_option("--keep", keep,
                        "folder for the programs of findings, and one for each reason of a refusal "
                        "(default: none)");
    command->add_option("--seconds", seconds, "begin no program after so long (default: all)")
        ->check(CLI::PositiveNumber);
    command->add_flag("--show", show, "print programs and settings, and check none");
    common.add(*command);
  }

  int main() override {
    readSeeds();
    common.checkTarget();
    if (kind == "all")
      kinds = caseKinds();
    else
      kinds = {kind};
    makeJob(0);
    if (show)
      return printAll();
    if (!keep.empty())
      std::filesystem::create_directories(keep);
    WorkerOptions options = common.workers();
    options.total = std::chrono::seconds(seconds);
    const uint64_t jobs = (last - first + 1) * kinds.size();
    const uint64_t done = runJobs(*this, 0, jobs, options, [&](const Report &report) {
      if (!summary.count(report.verdict))
        return;
      Case source;
      source.name =
          fmt::format("{} {}", kinds[report.job % kinds.size()], first + report.job / kinds.size());
      Setting setting;
      try {
        source = makeJob(report.job);
        const std::vector<Setting> settings = settingsOf(report.job, source);
        setting = settings[std::min<size_t>(report.part, settings.size() - 1)];
      } catch (const std::exception &) {
        // A program that cannot be drawn: the process that tried to has said so.
      }
      summary.tell(source, setting, report.verdict);
      if (!keep.empty())
        save(report.job, source, setting, report.verdict);
    });
    return summary.print(done);
  }

  Case makeJob(uint64_t job) const override {
    return makeCase(kinds[job % kinds.size()], first + job / kinds.size());
  }

  std::vector<Setting> settingsOf(uint64_t, const Case &source) const override {
    SettingRange range = source.range(common.target);
    range.compileOnly = common.compileOnly;
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

  int printAll() const {
    const uint64_t jobs = (last - first + 1) * kinds.size();
    for (uint64_t job = 0; job < jobs; ++job) {
      const Case source = makeJob(job);
      std::string text = fmt::format("// flags: {}\n// {}\n", source.flags(), source.name);
      for (const Setting &setting : settingsOf(job, source))
        text += "// setting: " + setting.text() + '\n';
      std::printf("%s%s", text.c_str(), source.source.text.c_str());
    }
    return 0;
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

  std::string kind = "all", seeds = "0..99", keep;
  unsigned count = 2;
  bool show = false;
  uint64_t first = 0, last = 0, seconds = 0;
  std::vector<std::string> kinds;
  std::map<uint64_t, std::string> headers; ///< of kept files, by job
  Summary summary;
};

} // namespace

std::unique_ptr<Command> makeRunCommand(CLI::App &app) { return std::make_unique<RunCommand>(app); }

} // namespace hydra::test
