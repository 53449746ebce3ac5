// hydra-differential check: model files under all settings, or some.
#include "test/fuzz/differential/Commands.h"

#include <cstdio>

namespace hydra::test {

namespace {

class CheckCommand final : public Command, public CaseRunner {
public:
  explicit CheckCommand(CLI::App &app) {
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

  int main() override {
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
      cases.push_back(options.read(file));
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
