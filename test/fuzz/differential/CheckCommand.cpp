// hydra-differential check: model files under all settings, or some.
#include "runtime/support/Error.h"
#include "test/fuzz/differential/Commands.h"

#include <cstdio>

namespace hydra::test {

namespace {

class CheckCommand final : public Command, public CaseRunner {
public:
  explicit CheckCommand(CLI::App &app) : CaseRunner(common) {
    command = app.add_subcommand("check", "model files under all settings, or some");
    command
        ->add_option("files", files,
                     "models; a line `// flags: --batch=…` at the beginning of "
                     "one says how it is bound")
        ->required();
    command
        ->add_option("--mode", mode, "only settings of this mode: generate, forward, grad or train")
        ->check(CLI::IsMember({"generate", "forward", "grad", "train"}));
    command->add_option("--setting", settings,
                        "a setting: flags of hydrac, and --threads; repeatable (default: all)");
    command->add_flag("--verbose", verbose, "a line for every setting");
    options.add(*command);
    common.add(*command);
  }

  int main() override {
    for (const std::string &text : settings)
      chosenSettings.push_back(common.parse(text));
    common.checkTarget();
    for (const std::string &file : files)
      cases.push_back(options.read(file));
    for (const Case &source : cases)
      if (settingsOf(0, source).empty())
        support::fail("{}: hydrac has the model in no mode of these settings", source.name);
    const uint64_t done =
        runJobs(*this, 0, cases.size(), common.workers(), [&](const Report &report) {
          const Case &source = cases[report.job];
          const Setting setting = settingsOf(report.job, source)[report.part];
          if (verbose || !settings.empty())
            std::printf("%-24s %s [%s]\n", nameOf(report.verdict.outcome), source.name.c_str(),
                        setting.text().c_str());
          if (summary.count(report.verdict))
            summary.tell(source, setting, report.verdict);
          if (isAsExpected(source, report.verdict.outcome))
            return;
          std::printf("expected %s: %s [%s] is %s\n", source.expected.c_str(), source.name.c_str(),
                      setting.text().c_str(), nameOf(report.verdict.outcome));
          summary.takeUnexpected();
        });
    return summary.print(done);
  }

  Case makeJob(uint64_t job) const override { return cases[job]; }
  /// Those of modes that the model can be had in.
  std::vector<Setting> settingsOf(uint64_t, const Case &source) const override {
    std::vector<Setting> possible;
    SettingRange own = source.range(common.target);
    if (!mode.empty())
      own.modes = {Setting::parse("--mode=" + mode).mode};
    for (const Setting &setting : settings.empty() ? allSettings(own) : chosenSettings)
      if (llvm::is_contained(source.modes(), setting.mode))
        possible.push_back(setting);
    return possible;
  }

private:
  static bool isAsExpected(const Case &source, Outcome outcome) {
    if (source.expected == "refused")
      return outcome == Outcome::RefusedByCompiler || outcome == Outcome::RefusedByOracle;
    return source.expected.empty() || outcome == Outcome::Right;
  }

  FileOptions options;
  std::vector<std::string> files, settings;
  std::string mode;
  bool verbose = false;
  std::vector<Case> cases;
  std::vector<Setting> chosenSettings;
  Summary summary;
};

} // namespace

std::unique_ptr<Command> makeCheckCommand(CLI::App &app) {
  return std::make_unique<CheckCommand>(app);
}

} // namespace hydra::test
